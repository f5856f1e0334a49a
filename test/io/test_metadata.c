/* test_metadata.c - texts and the checksum in a safetensors file. */
#include "io/crc32c.h"
#include "scratch.h"

static void test_texts(void **state)
{
    (void)state;
    IoMetadata m = { 0 };
    assert_null(io_metadata_get(m, "a"));
    for (int i = 0; i < 20; i++) DONE(io_metadata_set(&m, (char[]){ (char)('a' + i), 0 }, "old"));
    DONE(io_metadata_set(&m, "c", "new \"\n\\ \xc3\xa4"));
    assert_int_equal(m.count, 20);
    assert_string_equal(io_metadata_get(m, "c"), "new \"\n\\ \xc3\xa4");
    assert_string_equal(io_metadata_get(m, "t"), "old");
    assert_int_equal(io_metadata_set(&m, "x", NULL), -1);
    assert_says(TENSOR_ENULL, "io_metadata_set: the text is NULL");
    for (int checksum = 0; checksum < 2; checksum++)
        for (int empty = 0; empty < 2; empty++) {
            TensorDict dict = { 0 }, back;
            IoMetadata found = { 0 };
            if (!empty) DONE(nn_dict_set(&dict, "x", VEC(1, 2, 3)));
            DONE(io_save_safetensors(scratch("texts"), dict, .metadata = m, .checksum = checksum));
            back = io_load_safetensors(scratch("texts"), .metadata = &found);
            assert_int_equal(back.count, dict.count);
            assert_int_equal(found.count, 20 + checksum);
            for (int i = 0; i < 20; i++)
                assert_string_equal(io_metadata_get(found, m.item[i].name), m.item[i].text);
            assert_int_equal(io_metadata_get(found, "crc32c") != NULL, checksum);
            if (!empty) assert_values(nn_dict_get(back, "x"), 1, 2, 3);
            io_metadata_free(found), nn_dict_free(dict), nn_dict_free(back);
        }
    io_metadata_free(m);
}

static void test_refusals(void **state)
{
    (void)state;
    TensorDict none = { 0 };
    IoMetadata m = { 0 };
    DONE(io_metadata_set(&m, "crc32c", "00000000"));
    assert_int_equal(io_save_safetensors(scratch("no"), none, .metadata = m), -1);
    assert_says(TENSOR_EVALUE, ".checksum = true writes it");
    io_metadata_free(m);
    m = (IoMetadata){ 0 };
    DONE(io_metadata_set(&m, "a", "\xff"));
    assert_int_equal(io_save_safetensors(scratch("no"), none, .metadata = m), -1);
    assert_says(TENSOR_EVALUE, "no UTF-8");
    assert_int_equal(io_save_safetensors(scratch("no"), none, .metadata = (IoMetadata){ .count = 1 }), -1);
    assert_says(TENSOR_ENULL, "have no items");
    io_metadata_free(m);
}

/* RFC 3720, B.4, in one piece and in two. */
static void test_checksum(void **state)
{
    (void)state;
    unsigned char bytes[32];
    static const uint32_t want[] = { 0x8a9136aa, 0x62a8ab43, 0x46dd794e, 0x113fdb5c };
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < 32; i++)
            bytes[i] = (unsigned char)(kind == 0 ? 0 : kind == 1 ? 0xff : kind == 2 ? i : 31 - i);
        for (size_t cut = 0; cut <= 32; cut++)
            assert_int_equal(crc32c(crc32c(0, bytes, cut), bytes + cut, 32 - cut), want[kind]);
    }
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    for (size_t n = 0; n <= 32; n++) /* bytes of the last kind, by the instruction and without */
        assert_int_equal(crc32c(7, bytes, n), ~crc32c_plain(~UINT32_C(7), bytes, n));
}

/* Another program may have written the entry along with its own bytes: it stands elsewhere, and means
 * nothing. */
static void test_checksum_of_another_file(void **state)
{
    (void)state;
    static const char file[] = "\x30\0\0\0\0\0\0\0{\"__metadata__\":{\"a\":\"b\",\"crc32c\":\"12345678\"}}  ";
    IoMetadata found = { 0 };
    put_file("other", file, sizeof file - 1);
    TensorDict dict = io_load_safetensors(scratch("other"), .metadata = &found);
    assert_int_equal(dict.count, 0);
    assert_string_equal(io_metadata_get(found, "a"), "b");
    assert_null(io_metadata_get(found, "crc32c"));
    io_metadata_free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_texts),
        TEST(test_refusals),
        TEST(test_checksum),
        TEST(test_checksum_of_another_file),
    };
    return cmocka_run_group_tests_name("metadata", tests, scratch_begin, scratch_end);
}
