/* dwarf_line.c - the state machine of .debug_line.
 *
 *  - A table is a run of units; a unit is a header, the names of directories and files, and a program.
 *  - A program is a run of sequences: rows of rising addresses, each good until the next one's address.
 *  - A Cursor never leaves its bounds: a read past the end gives 0, sets bad and leaves nothing to read, so
 * every loop over a cursor ends. */
#include <string.h>
#include "dwarf_line.h"

typedef struct Cursor {
    const uint8_t *at, *end;
    bool bad;
} Cursor;

typedef struct Unit {
    unsigned version, offset_size;
    unsigned step, line_range, opcode_base; /* step: bytes of the shortest instruction */
    int line_base;
    const uint8_t *lengths; /* operand counts of the standard opcodes, from opcode 1 */
    Cursor names, program;
} Unit;

typedef struct Row {
    uint64_t address;
    uint64_t file;
    unsigned line;
} Row;

/* ---- reading --------------------------------------------------------------------------------- */

static size_t left(const Cursor *c) { return (size_t)(c->end - c->at); }

static void spoil(Cursor *c)
{
    c->bad = true;
    c->at = c->end;
}

static void skip(Cursor *c, uint64_t n)
{
    if (n > left(c)) spoil(c);
    else c->at += n;
}

static uint64_t number(Cursor *c, unsigned size)
{
    uint8_t b;
    uint16_t h;
    uint32_t w;
    uint64_t d;
    const uint8_t *from = c->at;
    skip(c, size);
    if (c->bad) return 0;
    switch (size) {
    case 1: memcpy(&b, from, size); return b;
    case 2: memcpy(&h, from, size); return h;
    case 4: memcpy(&w, from, size); return w;
    case 8: memcpy(&d, from, size); return d;
    }
    spoil(c);
    return 0;
}

static uint64_t uleb(Cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    spoil(c);
    return 0;
}

static int64_t sleb(Cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; c->at < c->end;) {
        uint8_t byte = *c->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80) continue;
        if (shift < 64 && (byte & 0x40)) value |= ~(uint64_t)0 << shift;
        return (int64_t)value;
    }
    spoil(c);
    return 0;
}

static const char *string(Cursor *c)
{
    const char *text = (const char *)c->at;
    const uint8_t *nul = left(c) ? memchr(c->at, 0, left(c)) : NULL;
    if (!nul) {
        spoil(c);
        return NULL;
    }
    c->at = nul + 1;
    return text;
}

static const char *string_at(Bytes section, uint64_t offset)
{
    if (offset >= section.size || !memchr(section.data + offset, 0, section.size - offset)) return NULL;
    return (const char *)section.data + offset;
}

/* ---- the header ------------------------------------------------------------------------------ */

static bool read_unit(Cursor *c, Unit *u)
{
    *u = (Unit){ .offset_size = 4 };
    uint64_t length = number(c, 4);
    if (length == 0xffffffff) u->offset_size = 8, length = number(c, 8);
    if (c->bad || length > left(c)) return false;
    Cursor h = { c->at, c->at + length, false };
    c->at = h.end;
    u->version = (unsigned)number(&h, 2);
    if (u->version >= 5) skip(&h, 2); /* sizes of addresses and of segment selectors */
    uint64_t header = number(&h, u->offset_size);
    u->program = h;
    skip(&u->program, header);
    u->step = (unsigned)number(&h, 1);
    if (u->version >= 4) skip(&h, 1); /* operations an instruction: 1 but on VLIW machines */
    skip(&h, 1);                      /* default of is_stmt */
    u->line_base = (int8_t)number(&h, 1);
    u->line_range = (unsigned)number(&h, 1);
    u->opcode_base = (unsigned)number(&h, 1);
    u->lengths = h.at;
    skip(&h, u->opcode_base ? u->opcode_base - 1 : 0);
    u->names = h;
    if (h.bad || u->version < 2 || u->version > 5 || !u->line_range || !u->opcode_base) spoil(&u->program);
    return true;
}

/* ---- the names of files ---------------------------------------------------------------------- */

enum { CONTENT_PATH = 1, CONTENT_DIRECTORY = 2 };

/* One field of an entry of version 5: a text or a number, by its form. */
static void field(const LineTables *t, const Unit *u, Cursor *c, uint64_t form, const char **text,
                  uint64_t *value)
{
    switch (form) {
    case 0x08: *text = string(c); break;                                         /* string */
    case 0x0e: *text = string_at(t->str, number(c, u->offset_size)); break;      /* strp */
    case 0x1f: *text = string_at(t->line_str, number(c, u->offset_size)); break; /* line_strp */
    case 0x1d:
    case 0x17: skip(c, u->offset_size); break; /* strp_sup, sec_offset */
    case 0x0b: *value = number(c, 1); break;   /* data1, data2, data4, data8 */
    case 0x05: *value = number(c, 2); break;
    case 0x06: *value = number(c, 4); break;
    case 0x07: *value = number(c, 8); break;
    case 0x0f: *value = uleb(c); break;           /* udata */
    case 0x0d: *value = (uint64_t)sleb(c); break; /* sdata */
    case 0x1e: skip(c, 16); break;                /* data16: a checksum */
    case 0x09: skip(c, uleb(c)); break;           /* block, block1, block2, block4 */
    case 0x0a: skip(c, number(c, 1)); break;
    case 0x03: skip(c, number(c, 2)); break;
    case 0x04: skip(c, number(c, 4)); break;
    case 0x1a: uleb(c); break; /* strx: its text is reached through .debug_info only */
    case 0x25: skip(c, 1); break;
    case 0x26: skip(c, 2); break;
    case 0x27: skip(c, 3); break;
    case 0x28: skip(c, 4); break;
    default: spoil(c);
    }
}

/* Reads a table of version 5 through, and entry number index out of it. */
static bool table_entry(const LineTables *t, const Unit *u, Cursor *c, uint64_t index, const char **path,
                        uint64_t *directory)
{
    unsigned fields = (unsigned)number(c, 1);
    Cursor formats = *c;
    for (unsigned i = 0; i < fields; i++) uleb(c), uleb(c);
    uint64_t count = uleb(c);
    if (!fields && count) spoil(c); /* else a huge count would be a long loop over nothing */
    *path = NULL;
    for (uint64_t i = 0; i < count && !c->bad; i++) {
        Cursor f = formats;
        for (unsigned k = 0; k < fields; k++) {
            uint64_t content = uleb(&f), value = 0;
            const char *text = NULL;
            field(t, u, c, uleb(&f), &text, &value);
            if (i == index && content == CONTENT_PATH) *path = text;
            if (i == index && content == CONTENT_DIRECTORY && directory) *directory = value;
        }
    }
    return !c->bad && *path;
}

static bool names5(const LineTables *t, const Unit *u, uint64_t file, LinePlace *place)
{
    Cursor c = u->names;
    uint64_t directory = 0;
    table_entry(t, u, &c, 0, &place->directory, NULL);
    if (!table_entry(t, u, &c, file, &place->file, &directory)) return false;
    place->directory = NULL;
    c = u->names;
    return !directory || table_entry(t, u, &c, directory, &place->directory, NULL);
}

/* Before version 5: texts that end with an empty one, and both tables count from 1. */
static bool names2(const Unit *u, uint64_t file, LinePlace *place)
{
    Cursor c = u->names, directories = c;
    const char *text;
    while ((text = string(&c)) && *text) {}
    for (uint64_t i = 1; (text = string(&c)) && *text; i++) {
        uint64_t directory = uleb(&c);
        uleb(&c), uleb(&c); /* time, length */
        if (i != file) continue;
        place->file = text;
        place->directory = NULL;
        for (uint64_t d = 0; d < directory; d++)
            if (!(place->directory = string(&directories)) || !*place->directory) return false;
        return true;
    }
    return false;
}

/* ---- the program ----------------------------------------------------------------------------- */

typedef struct Search {
    uint64_t address, low, high;
    bool begun, valid; /* of this sequence: a row was seen; the first one was in the segment */
    uint64_t previous; /* address of the row before */
    Row last;          /* the last row that has a line */
} Search;

/* True: the row before this one covers the address. */
static bool add_row(Search *s, const Row *row)
{
    if (!s->begun) {
        s->begun = true;
        s->valid = row->address >= s->low && row->address < s->high;
        s->last.line = 0;
    } else if (s->valid && s->previous <= s->address && s->address < row->address && s->last.line) {
        return true;
    }
    s->previous = row->address;
    if (row->line) s->last = *row;
    return false;
}

enum {
    COPY = 1,
    ADVANCE_PC,
    ADVANCE_LINE,
    SET_FILE,
    SET_COLUMN,
    NEGATE_STMT,
    SET_BASIC_BLOCK,
    CONST_ADD_PC,
    FIXED_ADVANCE_PC,
    END_SEQUENCE = 1,
    SET_ADDRESS = 2
};

/* True: the search is over. */
static bool extended(Cursor *c, Row *row, Search *s)
{
    uint64_t length = uleb(c);
    if (!length || length > left(c)) {
        spoil(c);
        return false;
    }
    Cursor op = { c->at, c->at + length, false };
    c->at = op.end;
    switch (number(&op, 1)) {
    case END_SEQUENCE:
        if (add_row(s, row)) return true;
        *row = (Row){ .file = 1, .line = 1 };
        s->begun = false;
        break;
    case SET_ADDRESS: row->address = number(&op, (unsigned)(length - 1 <= 8 ? length - 1 : 0)); break;
    }
    return false;
}

static bool run(const Unit *u, Search *s)
{
    Cursor c = u->program;
    Row row = { .file = 1, .line = 1 };
    s->begun = false;
    while (c.at < c.end) {
        unsigned op = *c.at++;
        if (op >= u->opcode_base) {
            unsigned special = op - u->opcode_base;
            row.address += (uint64_t)u->step * (special / u->line_range);
            row.line += (unsigned)(u->line_base + (int)(special % u->line_range));
            if (add_row(s, &row)) return true;
            continue;
        }
        switch (op) {
        case 0:
            if (extended(&c, &row, s)) return true;
            break;
        case COPY:
            if (add_row(s, &row)) return true;
            break;
        case ADVANCE_PC: row.address += u->step * uleb(&c); break;
        case ADVANCE_LINE: row.line += (unsigned)sleb(&c); break;
        case SET_FILE: row.file = uleb(&c); break;
        case CONST_ADD_PC: row.address += (uint64_t)u->step * ((255 - u->opcode_base) / u->line_range); break;
        case FIXED_ADVANCE_PC: row.address += number(&c, 2); break;
        default:
            for (unsigned i = u->lengths[op - 1]; i; i--) uleb(&c);
        }
    }
    return false;
}

bool dwarf_line_find(const LineTables *tables, uint64_t address, uint64_t low, uint64_t high,
                     LinePlace *place)
{
    if (!tables->line.size) return false;
    Cursor c = { tables->line.data, tables->line.data + tables->line.size, false };
    Search s = { .address = address, .low = low, .high = high };
    Unit u;
    while (left(&c) && read_unit(&c, &u)) {
        if (!run(&u, &s)) continue;
        *place = (LinePlace){ .line = s.last.line };
        return u.version >= 5 ? names5(tables, &u, s.last.file, place) : names2(&u, s.last.file, place);
    }
    return false;
}
