/* published.c FOLDER - nets of published layouts take the files that published.py has made, under their names
 * there; what they hold then is written back for it to compare. */
#include <stdio.h>
#include <tapegrad.h>

enum { SHARDS = 2 };

static const char *in(const char *folder, const char *name)
{
    static char path[2][512];
    static int turn;
    char *p = path[turn++ % 2];
    snprintf(p, sizeof *path, "%s/%s", folder, name);
    return p;
}

static void answer(Module *net, const char *folder, const char *name)
{
    io_save_safetensors(in(folder, name), nn_state_dict(net));
    nn_free(net);
}

static void load(const char *folder, const char *name, Module *net, const NNRename *names)
{
    char to[64];
    TensorDict dict = io_load_safetensors(in(folder, name));
    nn_load_state_dict(net, dict, .names = names);
    nn_dict_free(dict);
    snprintf(to, sizeof to, "ours-%s", name);
    answer(net, folder, to);
}

/* ---- GPT-2: Conv1D has [in, out], causal masks are saved, lm_head is wte and is not ------------------ */

static Module *gpt2_block(void)
{
    return nn_module_dict({ "ln_1", nn_layer_norm(8) }, { "attn", nn_multihead_attention(8, 2) },
                          { "ln_2", nn_layer_norm(8) }, { "c_fc", nn_linear(8, 32) },
                          { "c_proj", nn_linear(32, 8) });
}

static void gpt2(const char *folder)
{
    Module *net =
        nn_module_dict({ "wte", nn_embedding(11, 8) }, { "wpe", nn_embedding(6, 8) },
                       { "h", nn_module_list(gpt2_block(), gpt2_block()) }, { "ln_f", nn_layer_norm(8) },
                       { "lm_head", nn_linear(8, 11, .bias = false) });
    nn_register_parameter(nn_get_module(net, "lm_head"), "weight", nn_get(net, "wte.weight"));
    load(folder, "gpt2.safetensors", net,
         NN_NAMES({ "attn.bias", NULL }, { "attn.c_attn.weight", "attn.in_proj_weight", true },
                  { "attn.c_attn.bias", "attn.in_proj_bias" },
                  { "attn.c_proj.weight", "attn.out_proj.weight", true },
                  { "attn.c_proj.bias", "attn.out_proj.bias" }, { "mlp.c_fc.weight", "c_fc.weight", true },
                  { "mlp.c_proj.weight", "c_proj.weight", true }, { "mlp.", "" }));
}

/* ---- torchvision's ResNet: names as they are ---------------------------------------------------------- */

static Module *resnet_block(int in_channels, int channels, int stride)
{
    Module *m = nn_module_dict(
        { "conv1", nn_conv2d(in_channels, channels, 3, .stride = stride, .bias = false) },
        { "bn1", nn_batch_norm2d(channels) }, { "conv2", nn_conv2d(channels, channels, 3, .bias = false) },
        { "bn2", nn_batch_norm2d(channels) });
    if (stride > 1)
        nn_child(m, "downsample",
                 nn_sequential(nn_conv2d(in_channels, channels, 1, .stride = stride, .bias = false),
                               nn_batch_norm2d(channels)));
    return m;
}

static void resnet(const char *folder)
{
    load(folder, "resnet.safetensors",
         nn_module_dict({ "conv1", nn_conv2d(3, 4, 7, .bias = false) }, { "bn1", nn_batch_norm2d(4) },
                        { "layer1", nn_sequential(resnet_block(4, 4, 1)) },
                        { "layer2", nn_sequential(resnet_block(4, 8, 2), resnet_block(8, 8, 1)) },
                        { "fc", nn_linear(8, 5) }),
         NULL);
}

/* ---- BERT: gamma and beta, heads of the pretraining that are not wanted ------------------------------- */

static Module *bert_layer(void)
{
    return nn_module_dict({ "query", nn_linear(8, 8) }, { "key", nn_linear(8, 8) },
                          { "value", nn_linear(8, 8) }, { "out", nn_linear(8, 8) },
                          { "norm1", nn_layer_norm(8) }, { "linear1", nn_linear(8, 16) },
                          { "linear2", nn_linear(16, 8) }, { "norm2", nn_layer_norm(8) });
}

static void bert(const char *folder)
{
    load(folder, "bert.safetensors",
         nn_module_dict({ "words", nn_embedding(12, 8) }, { "positions", nn_embedding(7, 8) },
                        { "types", nn_embedding(2, 8) }, { "norm", nn_layer_norm(8) },
                        { "layer", nn_module_list(bert_layer(), bert_layer()) },
                        { "pooler", nn_linear(8, 8) }),
         NN_NAMES({ "cls", NULL }, { "bert.", "" }, { "LayerNorm.gamma", "LayerNorm.weight" },
                  { "LayerNorm.beta", "LayerNorm.bias" }, { "embeddings.word_embeddings", "words" },
                  { "embeddings.position_embeddings", "positions" },
                  { "embeddings.token_type_embeddings", "types" }, { "embeddings.LayerNorm", "norm" },
                  { "encoder.layer", "layer" }, { "attention.self.", "" },
                  { "attention.output.dense", "out" }, { "attention.output.LayerNorm", "norm1" },
                  { "intermediate.dense", "linear1" }, { "output.dense", "linear2" },
                  { "output.LayerNorm", "norm2" }, { "pooler.dense", "pooler" }));
}

/* ---- LLaMA: f16 in shards, of which the index lists the names ----------------------------------------- */

static Module *llama_layer(void)
{
    return nn_module_dict(
        { "q_proj", nn_linear(8, 8, .bias = false) }, { "k_proj", nn_linear(8, 4, .bias = false) },
        { "v_proj", nn_linear(8, 4, .bias = false) }, { "o_proj", nn_linear(8, 8, .bias = false) },
        { "gate", nn_linear(8, 12, .bias = false) }, { "up", nn_linear(8, 12, .bias = false) },
        { "down", nn_linear(12, 8, .bias = false) }, { "norm1", nn_rms_norm(8) },
        { "norm2", nn_rms_norm(8) });
}

static void llama(const char *folder)
{
    TensorDict all = { 0 };
    Module *net = nn_module_dict({ "tokens", nn_embedding(10, 8) },
                                 { "layers", nn_module_list(llama_layer(), llama_layer()) },
                                 { "norm", nn_rms_norm(8) }, { "lm_head", nn_linear(8, 10, .bias = false) });
    for (int i = 1; i <= SHARDS; i++) {
        char name[64];
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", i, SHARDS);
        TensorDict shard = io_load_safetensors(in(folder, name));
        for (int k = 0; k < shard.count; k++) nn_dict_set(&all, shard.item[k].name, shard.item[k].tensor);
        nn_dict_free(shard);
    }
    nn_load_state_dict(net, all,
                       .names = NN_NAMES({ "self_attn.rotary_emb.inv_freq", NULL }, { "model.", "" },
                                         { "embed_tokens", "tokens" }, { "self_attn.", "" },
                                         { "mlp.gate_proj", "gate" }, { "mlp.up_proj", "up" },
                                         { "mlp.down_proj", "down" }, { "input_layernorm", "norm1" },
                                         { "post_attention_layernorm", "norm2" }));
    nn_dict_free(all);
    answer(net, folder, "ours-llama.safetensors");
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    TensorScope scope = tensor_scope_open();
    gpt2(argv[1]);
    resnet(argv[1]);
    bert(argv[1]);
    llama(argv[1]);
    tensor_scope_close(scope);
    if (tensor_error()) fprintf(stderr, "interop: %s\n", tensor_error());
    return tensor_error() != NULL;
}
