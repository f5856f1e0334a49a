#!/bin/sh
# compile_commands.sh - reads what `make -Bn` says it would run, writes compile_commands.json for editors:
# one entry for each C file that is compiled.
awk -v folder="$PWD" '
    BEGIN { print "["; separator = "" }
    / -c / && match($0, /&& [^&]* -c [^ ]+\.c -o [^ ]+/) {
        command = substr($0, RSTART + 3, RLENGTH - 3)
        file = command
        sub(/.* -c /, "", file)
        sub(/ .*/, "", file)
        if (file in seen) next
        seen[file] = 1
        gsub(/\\/, "\\\\", command)
        gsub(/"/, "\\\"", command)
        printf "%s{\"directory\": \"%s\", \"file\": \"%s\",\n", separator, folder, file
        printf " \"command\": \"%s\"}", command
        separator = ",\n"
    }
    END { print "\n]" }'
