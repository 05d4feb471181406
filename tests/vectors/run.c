/* Runs the vectors of one file through the C API, see README.md. */
#include "vectors.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* file_name;
static unsigned line_number;
static char vector_name[MAX_TEXT];
static int differs;

void broken(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s:%u: %s: ", file_name, line_number, vector_name);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    differs = 1;
}

/* Splits a line at its tabs and returns the number of fields. */
static size_t fields_of(char* line, char** fields, size_t capacity) {
    size_t count = 0;
    for (char* rest = line; rest != NULL && count < capacity; count++) {
        fields[count] = rest;
        rest = strchr(rest, '\t');
        if (rest != NULL) {
            *rest++ = '\0';
        }
    }
    return count;
}

static int has_all_pieces(const char* message, char* pieces) {
    for (char* piece = strtok(pieces, "|"); piece != NULL; piece = strtok(NULL, "|")) {
        if (strstr(message, piece) == NULL) {
            return 0;
        }
    }
    return 1;
}

static void run_step(struct vector* vector, char* line) {
    char* fields[16];
    const size_t count = fields_of(line, fields, 16);
    const struct operation* operation = find_operation(fields[0]);
    if (operation == NULL || count < 2 + operation->input_count) {
        broken("%s: unknown operation or too few fields", fields[0]);
        return;
    }
    char expected[MAX_TEXT] = "";
    for (size_t i = 2 + operation->input_count; i < count; i++) {
        strcat(expected, "\t");
        strcat(expected, fields[i]);
    }
    vector->outputs[0] = '\0';
    const gcx_result result = operation->run(vector, fields + 2);
    const char* name = gcx_result_name(result);
    const char* message = result == GCX_SUCCESS ? "" : gcx_last_error_message();
    if (strcmp(name, fields[1]) != 0) {
        broken("%s: expected %s, got %s %s", fields[0], fields[1], name, message);
    } else if (result == GCX_SUCCESS && strcmp(vector->outputs, expected) != 0) {
        broken("%s: expected%s, got%s", fields[0], expected, vector->outputs);
    } else if (result != GCX_SUCCESS && !has_all_pieces(message, expected + (*expected == '\t'))) {
        broken("%s: the message lacks an expected piece: %s", fields[0], message);
    }
}

/* The current vector. Its objects are closed before the next one begins. */
static struct vector current;
static unsigned agree_count;
static unsigned differ_count;

static void end_vector(void) {
    if (vector_name[0] == '\0') {
        return;
    }
    close_all(&current);
    differ_count += differs != 0;
    agree_count += differs == 0;
}

static void begin_vector(const char* name) {
    memset(&current, 0, sizeof(current));
    differs = 0;
    strcpy(vector_name, name);
    current.cache.struct_size = sizeof(current.cache);
    /* Not available before the first vector has opened a driver. */
    if (agree_count + differ_count != 0 && gcx_cache_get_stats(&current.cache) != GCX_SUCCESS) {
        broken("the cache's statistics: %s", gcx_last_error_message());
    }
}

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    file_name = argv[1];
    FILE* file = fopen(file_name, "r");
    if (file == NULL) {
        perror(file_name);
        return 2;
    }
    static char line[MAX_TEXT];
    while (fgets(line, sizeof(line), file) != NULL) {
        line_number++;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#') {
            continue;
        }
        if (strncmp(line, "vector\t", 7) == 0) {
            end_vector();
            line[strcspn(line + 7, "\t") + 7] = '\0';
            begin_vector(line + 7);
        } else if (!differs) {
            run_step(&current, line);
        }
    }
    end_vector();
    fclose(file);
    printf("%s: %u vectors agree, %u differ, 0 left out\n", file_name, agree_count, differ_count);
    return agree_count != 0 && differ_count == 0 ? 0 : 1;
}
