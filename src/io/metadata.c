/* metadata.c - texts by name. */
#include <tapegrad/io.h>
#include "tensor/core.h"

static const char op[] = "io_metadata_set";

static char *copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = tg_alloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static void free_text(char *text)
{
    if (text) tg_free(text, strlen(text) + 1);
}

static IoText *find(IoMetadata m, const char *name)
{
    for (int i = 0; name && i < m.count; i++)
        if (strcmp(m.item[i].name, name) == 0) return &m.item[i];
    return NULL;
}

static int append(IoMetadata *m, const char *name, char *text)
{
    if (m->count == m->capacity) {
        int more = m->capacity ? 2 * m->capacity : 8;
        IoText *grown = tg_grow(m->item, (size_t)m->capacity * sizeof *grown, (size_t)more * sizeof *grown);
        if (!grown) return fail_memory(op);
        m->item = grown, m->capacity = more;
    }
    char *copy = copy_text(name);
    if (!copy) return fail_memory(op);
    m->item[m->count++] = (IoText){ copy, text };
    return 0;
}

int io_metadata_set(IoMetadata *m, const char *name, const char *text)
{
    if (!m || !name || !text)
        return fail(TENSOR_ENULL, op, "the %s is NULL", !m ? "metadata" : !name ? "name" : "text");
    char *copy = copy_text(text);
    if (!copy) return fail_memory(op);
    IoText *there = find(*m, name);
    if (there) {
        free_text(there->text);
        there->text = copy;
        return 0;
    }
    int status = append(m, name, copy);
    if (status) free_text(copy);
    return status;
}

const char *io_metadata_get(IoMetadata m, const char *name)
{
    const IoText *there = find(m, name);
    return there ? there->text : NULL;
}

void io_metadata_free(IoMetadata m)
{
    for (int i = 0; m.item && i < m.count; i++) free_text(m.item[i].name), free_text(m.item[i].text);
    tg_free(m.item, (size_t)m.capacity * sizeof *m.item);
}
