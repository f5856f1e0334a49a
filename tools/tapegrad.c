/* tapegrad.c - the command: tapegrad info. */
#include <stdio.h>
#include <string.h>
#include <tapegrad.h>

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "info") == 0) {
        fputs(tensor_build_info(), stdout);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts(TAPEGRAD_VERSION);
        return 0;
    }
    fputs("usage: tapegrad info        what this build and this machine can do\n"
          "       tapegrad --version\n",
          argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
    return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
}
