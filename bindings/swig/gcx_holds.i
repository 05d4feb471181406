/* Holds and MPS, for every language: see gcx_common.i, which includes this. A language says besides
 *
 *   REAL(NUMBER)                 a field of a struct, as SIGNED
 *   PATH(TEXT)                   a path, one of the language's values
 */

%typemap(in) gcx_hold {
    void* handle = NULL;
    if (!TO_HANDLE($input, &handle))
        FAIL
    $1 = ($1_ltype)handle;
}
CREATED(gcx_hold)

%typemap(in, numinputs=0) (char* token, uint32_t capacity) (char text[GCX_MAX_HOLD_TOKEN]) {
    $1 = text;
    $2 = (uint32_t)sizeof(text);
}
%typemap(argout) (char* token, uint32_t capacity) { GIVES(PATH($1)) }

/* The sets of atoms are the bytes of their words. */
FILLED_STRUCT(gcx_hold_info, info)
%typemap(argout) gcx_hold_info* info {
    STRUCT_BEGIN();
    SIGNED($1->family);
    UNSIGNED($1->flags);
    UNSIGNED($1->sm_count);
    UNSIGNED($1->device_sm_count);
    SIGNED($1->joined);
    SIGNED($1->simulated);
    SIGNED($1->lost);
    SIGNED($1->mps);
    REAL($1->mps_thread_percentage);
    UNSIGNED($1->id);
    UNSIGNED($1->since_ms);
    BYTES($1->atoms, sizeof($1->atoms));
    BYTES($1->device_uuid, sizeof($1->device_uuid));
    TEXT($1->name);
    GIVES(STRUCT_END(gcx_hold_info))
}
FILLED_STRUCT(gcx_mps_info, info)
%typemap(argout) gcx_mps_info* info {
    STRUCT_BEGIN();
    SIGNED($1->state);
    REAL($1->thread_percentage);
    GIVES(STRUCT_END(gcx_mps_info))
}
%typemap(argout) (gcx_live_hold** list, uint32_t* list_count) {
    uint32_t i;
    LIST_BEGIN(gcx_live_hold, *$2);
    for (i = 0; i < *$2; i++) {
        const gcx_live_hold* const hold = &(*$1)[i];
        STRUCT_BEGIN();
        UNSIGNED(hold->id);
        UNSIGNED(hold->since_ms);
        UNSIGNED(hold->until_ms);
        SIGNED(hold->pid);
        UNSIGNED(hold->user);
        SIGNED(hold->simulated);
        UNSIGNED(hold->waits);
        SIGNED(hold->family);
        UNSIGNED(hold->sm_count);
        UNSIGNED(hold->device_sm_count);
        UNSIGNED(hold->atom_count);
        UNSIGNED(hold->atom_sm_count);
        UNSIGNED(hold->last_atom_sm_count);
        SIGNED(hold->mps);
        REAL(hold->mps_thread_percentage);
        UNSIGNED(hold->parent);
        BYTES(hold->atoms, sizeof(hold->atoms));
        BYTES(hold->device_uuid, sizeof(hold->device_uuid));
        TEXT(hold->name);
        TEXT(hold->process_name);
        TEXT(hold->device_name);
        LIST_ADD(i, STRUCT_END(gcx_live_hold));
    }
    GIVES(LIST_END())
}
LISTED(gcx_live_hold, gcx_hold_list, list_holds)

%rename("$ignore", fullname=1) gcx_hold_create;
%rename(gcx_hold_create) create_hold;
%rename("$ignore", fullname=1) gcx_hold_acquire_lease;
%rename(gcx_hold_acquire_lease) acquire_lease_of_hold;
%inline %{
static gcx_result list_holds(const char* folder, gcx_live_hold** list, uint32_t* list_count) {
    LIST_ALL(gcx_hold_list(folder, *list, room, &needed));
}
static gcx_result create_hold(int32_t device, uint32_t wanted, uint32_t flags,
                              gcx_sm_family family, uint32_t min_sm_count, const char* lease_name,
                              const char* folder, uint32_t timeout_ms, gcx_cancel cancel,
                              gcx_hold* hold) {
    gcx_hold_params params = GCX_HOLD_PARAMS_INIT;
    params.flags = flags;
    params.family = family;
    params.min_sm_count = min_sm_count;
    params.timeout_ms = timeout_ms;
    params.cancel = cancel;
    params.name = lease_name;
    params.folder = folder;
    return gcx_hold_create(device, wanted, &params, hold);
}
static gcx_result acquire_lease_of_hold(gcx_hold hold, uint32_t wanted, uint32_t flags,
                                        gcx_sm_family family, uint32_t min_sm_count,
                                        uint32_t exclusive_sm_count, uint32_t timeout_ms,
                                        gcx_cancel cancel, const char* lease_name,
                                        gcx_lease* lease) {
    gcx_lease_params params = GCX_LEASE_PARAMS_INIT;
    params.flags = flags;
    params.family = family;
    params.min_sm_count = min_sm_count;
    params.exclusive_sm_count = exclusive_sm_count;
    params.timeout_ms = timeout_ms;
    params.cancel = cancel;
    params.name = lease_name;
    return gcx_hold_acquire_lease(hold, wanted, &params, lease);
}
%}
