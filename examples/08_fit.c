/* 08_fit.c - a network, its loss and its optimizer, trained in one call; then what it gets wrong.  The run
 * goes on where a kill or Ctrl-C ended it, if it is started again in the same folder. */
#include "example.h"

int main(void)
{
    tensor_manual_seed(1);
    Module *net =
        nn_sequential(nn_flatten(), nn_linear(784, 128), nn_relu(), nn_dropout(0.2), nn_linear(128, 10));
    Optimizer *opt = optim_adam(nn_parameters(net));
    DataLoader *train = data_loader(example_mnist(NULL, DATA_TRAIN), .batch_size = 64, .shuffle = true);
    DataLoader *test = data_loader(example_mnist(NULL, DATA_TEST), .batch_size = 500);
    Metric *accuracy = nn_metric_accuracy(), *matrix = nn_metric_confusion_matrix(10);

    nn_fit(net, train, nn_cross_entropy_loss(), opt, .epochs = 3, .validate = test, .patience = 1,
           .metrics = NN_METRICS(accuracy), .restore_best = true, .checkpoint = "fit", .csv = "fit.csv",
           .log_dir = "fit");

    nn_evaluate(net, test, NULL, .metrics = NN_METRICS(matrix));
    Tensor *counts = nn_metric_tensor(matrix);
    if (counts) puts("digits (rows), and what they were taken for (columns):"), tensor_print(counts);

    nn_metric_free(accuracy), nn_metric_free(matrix);
    data_loader_free(train), data_loader_free(test), optim_free(opt), nn_free(net);
    if (tensor_error()) fprintf(stderr, "%s\n", tensor_error());
    return tensor_error() != NULL;
}
