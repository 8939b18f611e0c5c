//go:build cgo

package libssl

/*
#cgo CFLAGS: -O2 -Wall -Wno-unused-const-variable
#cgo linux LDFLAGS: -ldl
#cgo windows LDFLAGS: -Wl,-Bstatic -lwinpthread -Wl,-Bdynamic
#include <stdlib.h>
#include "config.h"
#include "dl.h"
#include "fips.h"
#include "modules.h"
#include "policy.h"
#include "schedule.h"
#include "shim.h"
#include "slim.h"
#include "store.h"

#cgo noescape ossl_conn_start
#cgo nocallback ossl_conn_start
#cgo noescape ossl_conn_handshake
#cgo nocallback ossl_conn_handshake
#cgo noescape ossl_conn_facts
#cgo nocallback ossl_conn_facts
#cgo noescape ossl_conn_read
#cgo nocallback ossl_conn_read
#cgo noescape ossl_conn_write
#cgo nocallback ossl_conn_write
#cgo noescape ossl_conn_close_notify
#cgo nocallback ossl_conn_close_notify
#cgo noescape ossl_conn_key_update
#cgo nocallback ossl_conn_key_update
#cgo noescape ossl_conn_export
#cgo nocallback ossl_conn_export
#cgo noescape ossl_conn_free
#cgo nocallback ossl_conn_free
#cgo noescape ossl_conn_open
#cgo nocallback ossl_conn_open
#cgo noescape ossl_conn_seal
#cgo nocallback ossl_conn_seal
#cgo noescape ossl_conn_update
#cgo nocallback ossl_conn_update
#cgo noescape ossl_conn_kernel_key
#cgo nocallback ossl_conn_kernel_key
#cgo noescape ossl_conn_secrets
#cgo nocallback ossl_conn_secrets
#cgo noescape ossl_conn_of_secrets
#cgo nocallback ossl_conn_of_secrets
#cgo noescape ossl_conn_kernel_seals
#cgo nocallback ossl_conn_kernel_seals
#cgo noescape ossl_conn_offer_session
#cgo nocallback ossl_conn_offer_session
#cgo noescape ossl_conn_forget_sessions
#cgo nocallback ossl_conn_forget_sessions
#cgo noescape ossl_ctx_set_ticket_keys
#cgo nocallback ossl_ctx_set_ticket_keys
#cgo noescape ossl_conn_refuse
#cgo nocallback ossl_conn_refuse
#cgo noescape ossl_ctx_check_cred
#cgo nocallback ossl_ctx_check_cred
#cgo noescape ossl_conn_use_cred
#cgo nocallback ossl_conn_use_cred
#cgo noescape ossl_conn_use_psk
#cgo nocallback ossl_conn_use_psk
#cgo noescape ossl_key_public
#cgo nocallback ossl_key_public
#cgo noescape ossl_key_sign
#cgo nocallback ossl_key_sign
*/
import "C"

import "unsafe"

// The package calls C by the names in this file alone: c_name is C's name, [C] its documentation. A build
// without cgo has bindings_nocgo.go in its place, which internal/nocgo makes of it.
type (
	c_OSSL_LIB_CTX      = C.OSSL_LIB_CTX
	c_char              = C.char
	c_int               = C.int
	c_int32_t           = C.int32_t
	c_int64_t           = C.int64_t
	c_long              = C.long
	c_ossl_config       = C.ossl_config
	c_ossl_conn         = C.ossl_conn
	c_ossl_cred         = C.ossl_cred
	c_ossl_ctx          = C.ossl_ctx
	c_ossl_ctx_params   = C.ossl_ctx_params
	c_ossl_facts        = C.ossl_facts
	c_ossl_fips_files   = C.ossl_fips_files
	c_ossl_fips_info    = C.ossl_fips_info
	c_ossl_hellos       = C.ossl_hellos
	c_ossl_kernel_key   = C.ossl_kernel_key
	c_ossl_secrets      = C.ossl_secrets
	c_ossl_key          = C.ossl_key
	c_ossl_library      = C.ossl_library
	c_ossl_loaded       = C.ossl_loaded
	c_ossl_opened       = C.ossl_opened
	c_ossl_roots        = C.ossl_roots
	c_ossl_roots_answer = C.ossl_roots_answer
	c_ossl_roots_query  = C.ossl_roots_query
	c_ossl_step         = C.ossl_step
	c_ossl_ticket_key   = C.ossl_ticket_key
	c_ossl_traffic      = C.ossl_traffic
	c_size_t            = C.size_t
	c_uint16_t          = C.uint16_t
	c_uint64_t          = C.uint64_t
	c_uint8_t           = C.uint8_t
	c_uintptr_t         = C.uintptr_t
	c_ulong             = C.ulong
)

const (
	c_OSSL_DROPPED_BEHIND    = C.OSSL_DROPPED_BEHIND
	c_OSSL_DROPPED_ENGINE    = C.OSSL_DROPPED_ENGINE
	c_OSSL_DROPPED_PROVIDER  = C.OSSL_DROPPED_PROVIDER
	c_OSSL_DROPPED_SECTION   = C.OSSL_DROPPED_SECTION
	c_OSSL_FIPS_ASKED        = C.OSSL_FIPS_ASKED
	c_OSSL_FIPS_NO_MEMORY    = C.OSSL_FIPS_NO_MEMORY
	c_OSSL_FIPS_UNKNOWN      = C.OSSL_FIPS_UNKNOWN
	c_OSSL_LOAD_MISMATCH     = C.OSSL_LOAD_MISMATCH
	c_OSSL_MAX_ERRORS        = C.OSSL_MAX_ERRORS
	c_OSSL_MAX_USELESS       = C.OSSL_MAX_USELESS
	c_OSSL_MISS_FINISHED     = C.OSSL_MISS_FINISHED
	c_OSSL_NEED_PART         = C.OSSL_NEED_PART
	c_OSSL_RECORDS_PER_KEY   = C.OSSL_RECORDS_PER_KEY
	c_OSSL_STORE_CERTS       = C.OSSL_STORE_CERTS
	c_OSSL_STORE_KEYS        = C.OSSL_STORE_KEYS
	c_sizeof_ossl_fips_files = C.sizeof_ossl_fips_files
	c_sizeof_ossl_kernel_key = C.sizeof_ossl_kernel_key
	c_sizeof_ossl_secrets    = C.sizeof_ossl_secrets
	c_sizeof_ossl_library    = C.sizeof_ossl_library
)

func c_malloc(n c_size_t) unsafe.Pointer         { return C.malloc(n) } // never nil
func c_free(p unsafe.Pointer)                    { C.free(p) }
func c_CString(s string) *c_char                 { return C.CString(s) }
func c_CBytes(b []byte) unsafe.Pointer           { return C.CBytes(b) }
func c_GoString(p *c_char) string                { return C.GoString(p) }
func c_GoBytes(p unsafe.Pointer, n c_int) []byte { return C.GoBytes(p, n) }

// Of builds without cgo.
var linkFault, objectHash string

//export osslGoPassphrase
func osslGoPassphrase(handle C.uintptr_t, buf *C.uint8_t, size C.int32_t) C.int32_t {
	return passphraseFor(handle, buf, size)
}

func c_dl_is_loaded(name *c_char) c_int { return C.dl_is_loaded(name) }
func c_dl_search_folders() *c_char      { return C.dl_search_folders() }
func c_dl_static() c_int                { return C.dl_static() }
func c_ossl_config_asks_fips(conf *c_ossl_config, problem *c_char, size c_size_t) c_int {
	return C.ossl_config_asks_fips(conf, problem, size)
}
func c_ossl_config_dropped(conf *c_ossl_config) *c_char { return C.ossl_config_dropped(conf) }
func c_ossl_config_file() *c_char                       { return C.ossl_config_file() }
func c_ossl_config_free(conf *c_ossl_config)            { C.ossl_config_free(conf) }
func c_ossl_config_parse(text *c_uint8_t, n c_size_t, errors *c_ulong) *c_ossl_config {
	return C.ossl_config_parse(text, n, errors)
}
func c_ossl_config_value(conf *c_ossl_config, section, name *c_char) *c_char {
	return C.ossl_config_value(conf, section, name)
}
func c_ossl_conn_close_notify(conn *c_ossl_conn, out *c_uint8_t, out_cap c_size_t) c_ossl_step {
	return C.ossl_conn_close_notify(conn, out, out_cap)
}
func c_ossl_conn_export(conn *c_ossl_conn, out *c_uint8_t, n c_size_t, label *c_char, label_len c_size_t,
	context *c_uint8_t, context_len c_size_t, use_context c_int) c_int {
	return C.ossl_conn_export(conn, out, n, label, label_len, context, context_len, use_context)
}
func c_ossl_conn_facts(conn *c_ossl_conn, facts *c_ossl_facts) { C.ossl_conn_facts(conn, facts) }
func c_ossl_conn_forget_sessions(conn *c_ossl_conn)            { C.ossl_conn_forget_sessions(conn) }
func c_ossl_conn_free(conn *c_ossl_conn, sides, notify c_int, out *c_uint8_t, out_cap c_size_t) c_ossl_step {
	return C.ossl_conn_free(conn, sides, notify, out, out_cap)
}
func c_ossl_conn_handshake(conn *c_ossl_conn, in *c_uint8_t, in_len c_size_t, out *c_uint8_t, out_cap c_size_t,
	facts *c_ossl_facts) c_ossl_step {
	return C.ossl_conn_handshake(conn, in, in_len, out, out_cap, facts)
}
func c_ossl_conn_hellos(conn *c_ossl_conn, hellos *c_ossl_hellos) { C.ossl_conn_hellos(conn, hellos) }
func c_ossl_conn_kernel_key(conn *c_ossl_traffic, key *c_ossl_kernel_key) c_int {
	return C.ossl_conn_kernel_key(conn, key)
}
func c_ossl_conn_kernel_seals(conn *c_ossl_traffic) { C.ossl_conn_kernel_seals(conn) }
func c_ossl_conn_key_update(conn *c_ossl_conn, request c_int) c_ossl_step {
	return C.ossl_conn_key_update(conn, request)
}
func c_ossl_conn_miss(conn *c_ossl_conn, sent c_int, n c_uint8_t) { C.ossl_conn_miss(conn, sent, n) }
func c_ossl_conn_secrets(conn *c_ossl_conn, secrets *c_ossl_secrets) c_int {
	return C.ossl_conn_secrets(conn, secrets)
}

func c_ossl_conn_of_secrets(ctx *c_ossl_ctx, secrets *c_ossl_secrets, errors *c_ulong) *c_ossl_conn {
	return C.ossl_conn_of_secrets(ctx, secrets, errors)
}
func c_ossl_conn_offer_session(conn *c_ossl_conn, session *c_uint8_t, n c_size_t) c_int {
	return C.ossl_conn_offer_session(conn, session, n)
}
func c_ossl_conn_open(conn *c_ossl_traffic, in *c_uint8_t, in_len c_size_t, dst *c_uint8_t, dst_len c_size_t,
	opened *c_ossl_opened) {
	C.ossl_conn_open(conn, in, in_len, dst, dst_len, opened)
}
func c_ossl_conn_read(conn *c_ossl_conn, in *c_uint8_t, in_len c_size_t, dst *c_uint8_t,
	dst_len c_size_t) c_ossl_step {
	return C.ossl_conn_read(conn, in, in_len, dst, dst_len)
}
func c_ossl_conn_refuse(conn *c_ossl_conn, alert c_uint8_t, out *c_uint8_t, out_cap c_size_t) c_ossl_step {
	return C.ossl_conn_refuse(conn, alert, out, out_cap)
}
func c_ossl_conn_seal(conn *c_ossl_traffic, kind c_uint8_t, src *c_uint8_t, n c_size_t, out *c_uint8_t, out_cap,
	payload, first, grown c_size_t, step *c_ossl_step) {
	C.ossl_conn_seal(conn, kind, src, n, out, out_cap, payload, first, grown, step)
}
func c_ossl_conn_skip(conn *c_ossl_conn, sealing c_int, seq c_uint64_t) c_int {
	return C.ossl_conn_skip(conn, sealing, seq)
}
func c_ossl_conn_start(ctx *c_ossl_ctx, as_is, server c_int, server_name *c_char, session *c_uint8_t,
	session_len c_size_t, psk *c_uint8_t, psk_len c_size_t, may_ask c_int, conn **c_ossl_conn, errors *c_ulong, in *c_uint8_t,
	in_len c_size_t, out *c_uint8_t, out_cap c_size_t) c_ossl_step {
	return C.ossl_conn_start(ctx, as_is, server, server_name, session, session_len, psk, psk_len, may_ask, conn, errors, in, in_len,
		out, out_cap)
}
func c_ossl_conn_update(conn *c_ossl_traffic, sealing c_int) c_int {
	return C.ossl_conn_update(conn, sealing)
}
func c_ossl_conn_use_cred(conn *c_ossl_conn, cred *c_ossl_cred) c_int {
	return C.ossl_conn_use_cred(conn, cred)
}
func c_ossl_conn_use_psk(conn *c_ossl_conn, packed *c_uint8_t, n c_size_t) c_int {
	return C.ossl_conn_use_psk(conn, packed, n)
}
func c_ossl_conn_write(conn *c_ossl_conn, src *c_uint8_t, n c_size_t, out *c_uint8_t, out_cap, payload,
	first c_size_t) c_ossl_step {
	return C.ossl_conn_write(conn, src, n, out, out_cap, payload, first)
}
func c_ossl_cred_free(cred *c_ossl_cred) { C.ossl_cred_free(cred) }
func c_ossl_cred_new(fips c_int, chain *c_uint8_t, chain_len c_size_t, key *c_uint8_t, key_len c_size_t,
	sigalgs *c_char, staple *c_uint8_t, staple_len c_size_t, scts *c_uint8_t, scts_len c_size_t,
	errors *c_ulong) *c_ossl_cred {
	return C.ossl_cred_new(fips, chain, chain_len, key, key_len, sigalgs, staple, staple_len, scts, scts_len, errors)
}
func c_ossl_cred_new_key(chain *c_uint8_t, chain_len c_size_t, key *c_ossl_key, sigalgs *c_char, staple *c_uint8_t,
	staple_len c_size_t, scts *c_uint8_t, scts_len c_size_t, errors *c_ulong) *c_ossl_cred {
	return C.ossl_cred_new_key(chain, chain_len, key, sigalgs, staple, staple_len, scts, scts_len, errors)
}
func c_ossl_cred_new_signer(chain *c_uint8_t, chain_len c_size_t, signer c_uintptr_t, sigalgs *c_char,
	staple *c_uint8_t, staple_len c_size_t, scts *c_uint8_t, scts_len c_size_t, errors *c_ulong) *c_ossl_cred {
	return C.ossl_cred_new_signer(chain, chain_len, signer, sigalgs, staple, staple_len, scts, scts_len, errors)
}
func c_ossl_cred_set_identity(cred *c_ossl_cred, id *c_uint8_t) { C.ossl_cred_set_identity(cred, id) }
func c_ossl_ctx_add_ca(ctx *c_ossl_ctx, name *c_uint8_t, n c_size_t, errors *c_ulong) c_int {
	return C.ossl_ctx_add_ca(ctx, name, n, errors)
}
func c_ossl_ctx_add_part(ctx, part *c_ossl_ctx) { C.ossl_ctx_add_part(ctx, part) }
func c_ossl_ctx_check_cred(ctx *c_ossl_ctx, cred *c_ossl_cred, sign c_int, errors *c_ulong) c_int {
	return C.ossl_ctx_check_cred(ctx, cred, sign, errors)
}
func c_ossl_ctx_free(ctx *c_ossl_ctx) { C.ossl_ctx_free(ctx) }
func c_ossl_ctx_has_cipher(ctx *c_ossl_ctx, id c_uint16_t) c_int {
	return C.ossl_ctx_has_cipher(ctx, id)
}
func c_ossl_ctx_new(p *c_ossl_ctx_params, errors *c_ulong, failed **c_char) *c_ossl_ctx {
	return C.ossl_ctx_new(p, errors, failed)
}
func c_ossl_ctx_no_tickets(ctx *c_ossl_ctx) c_int     { return C.ossl_ctx_no_tickets(ctx) }
func c_ossl_ctx_parts() c_uint64_t                    { return C.ossl_ctx_parts() }
func c_ossl_ctx_seal_cas(ctx *c_ossl_ctx)             { C.ossl_ctx_seal_cas(ctx) }
func c_ossl_ctx_security_level(ctx *c_ossl_ctx) c_int { return C.ossl_ctx_security_level(ctx) }
func c_ossl_ctx_set_cred(ctx *c_ossl_ctx, cred *c_ossl_cred, errors *c_ulong) c_int {
	return C.ossl_ctx_set_cred(ctx, cred, errors)
}
func c_ossl_ctx_set_ticket_keys(ctx *c_ossl_ctx, keys *c_ossl_ticket_key, n c_size_t) c_int {
	return C.ossl_ctx_set_ticket_keys(ctx, keys, n)
}
func c_ossl_error_kind(code c_ulong, number *c_int) c_int { return C.ossl_error_kind(code, number) }
func c_ossl_error_reason(code c_ulong) *c_char            { return C.ossl_error_reason(code) }
func c_ossl_fips_by_host() c_int                          { return C.ossl_fips_by_host() }
func c_ossl_fips_configuration(from *c_ossl_fips_files) *c_char {
	return C.ossl_fips_configuration(from)
}
func c_ossl_fips_core_path() *c_char                          { return C.ossl_fips_core_path() }
func c_ossl_fips_has_signature(name *c_char) c_int            { return C.ossl_fips_has_signature(name) }
func c_ossl_fips_in_config(host *c_ossl_config) c_int         { return C.ossl_fips_in_config(host) }
func c_ossl_fips_module(info *c_ossl_fips_info) c_int         { return C.ossl_fips_module(info) }
func c_ossl_fips_module_file(from *c_ossl_fips_files) *c_char { return C.ossl_fips_module_file(from) }
func c_ossl_fips_path() *c_char                               { return C.ossl_fips_path() }
func c_ossl_fips_provider(from *c_ossl_fips_files) *c_char    { return C.ossl_fips_provider(from) }
func c_ossl_fips_random(to *c_uint8_t, n c_size_t) c_int      { return C.ossl_fips_random(to, n) }
func c_ossl_fips_setup(from *c_ossl_fips_files, process c_int, report *c_char, size c_size_t) c_int {
	return C.ossl_fips_setup(from, process, report, size)
}
func c_ossl_fips_try(from *c_ossl_fips_files, report *c_char, size c_size_t) c_int {
	return C.ossl_fips_try(from, report, size)
}
func c_ossl_fips_unlisted(conf *c_ossl_config) *c_char { return C.ossl_fips_unlisted(conf) }
func c_ossl_fips_verify(der *c_uint8_t, n c_size_t, hash *c_char, pss c_int, signed *c_uint8_t, signedLen c_size_t,
	signature *c_uint8_t, signatureLen c_size_t, errors *c_ulong) c_int {
	return C.ossl_fips_verify(der, n, hash, pss, signed, signedLen, signature, signatureLen, errors)
}
func c_ossl_has(names *c_char, groups, signatures c_size_t, fips c_int, has *c_uint8_t, errors *c_ulong) c_int {
	return C.ossl_has(names, groups, signatures, fips, has, errors)
}
func c_ossl_heap_in_use() c_size_t                { return C.ossl_heap_in_use() }
func c_ossl_heap_trim(do_it c_int) c_int          { return C.ossl_heap_trim(do_it) }
func c_ossl_keep_stacks(n c_size_t)               { C.ossl_keep_stacks(n) }
func c_ossl_key_free(key *c_ossl_key)             { C.ossl_key_free(key) }
func c_ossl_key_provider(key *c_ossl_key) *c_char { return C.ossl_key_provider(key) }
func c_ossl_key_public(key *c_ossl_key, out *c_uint8_t, size c_size_t, errors *c_ulong) c_size_t {
	return C.ossl_key_public(key, out, size, errors)
}
func c_ossl_key_sign(key *c_ossl_key, algorithm c_int, hash, salt *c_char, tbs *c_uint8_t, tbs_len c_size_t,
	sig *c_uint8_t, size c_size_t, errors *c_ulong) c_size_t {
	return C.ossl_key_sign(key, algorithm, hash, salt, tbs, tbs_len, sig, size, errors)
}
func c_ossl_load(path, crypto_path, crypto_name *c_char, lib *c_ossl_library, report *c_char, size c_size_t) c_int {
	return C.ossl_load(path, crypto_path, crypto_name, lib, report, size)
}
func c_ossl_load_begin() c_int                 { return C.ossl_load_begin() }
func c_ossl_load_give_up()                     { C.ossl_load_give_up() }
func c_ossl_loaded_free(loaded *c_ossl_loaded) { C.ossl_loaded_free(loaded) }
func c_ossl_module_of_provider(conf *c_ossl_config, name *c_char) *c_char {
	return C.ossl_module_of_provider(conf, name)
}
func c_ossl_modules_of_config(conf *c_ossl_config) *c_char { return C.ossl_modules_of_config(conf) }
func c_ossl_occupied() c_int                               { return C.ossl_occupied() }
func c_ossl_pauses_hold_threads() c_int                    { return C.ossl_pauses_hold_threads() }
func c_ossl_policy_read(conf *c_ossl_config, n *c_size_t, problem **c_char, errors *c_ulong) *c_uint8_t {
	return C.ossl_policy_read(conf, n, problem, errors)
}
func c_ossl_privileged() c_int { return C.ossl_privileged() }
func c_ossl_prompt_never()     { C.ossl_prompt_never() }
func c_ossl_provider_load(name *c_char, errors *c_ulong) c_int {
	return C.ossl_provider_load(name, errors)
}
func c_ossl_report_size() c_size_t { return C.ossl_report_size() }
func c_ossl_roots_add(roots *c_ossl_roots, der *c_uint8_t, n c_size_t, errors *c_ulong) c_int {
	return C.ossl_roots_add(roots, der, n, errors)
}
func c_ossl_roots_free(roots *c_ossl_roots) { C.ossl_roots_free(roots) }
func c_ossl_roots_new(system c_int, errors *c_ulong) *c_ossl_roots {
	return C.ossl_roots_new(system, errors)
}
func c_ossl_roots_verify(roots *c_ossl_roots, packed *c_uint8_t, n c_size_t,
	query *c_ossl_roots_query) c_ossl_roots_answer {
	return C.ossl_roots_verify(roots, packed, n, query)
}
func c_ossl_schedule_all_same() c_int   { return C.ossl_schedule_all_same() }
func c_ossl_schedule_distrust(on c_int) { C.ossl_schedule_distrust(on) }
func c_ossl_shard_known() c_int         { return C.ossl_shard_known() }
func c_ossl_shard_pin(shard c_int)      { C.ossl_shard_pin(shard) }
func c_ossl_slim_allowed() c_int        { return C.ossl_slim_allowed() }
func c_ossl_slim_hmac(digest *c_char, key *c_uint8_t, key_len c_size_t, data *c_uint8_t, n c_size_t,
	out *c_uint8_t) c_int {
	return C.ossl_slim_hmac(digest, key, key_len, data, n, out)
}
func c_ossl_slim_keys_found() c_uint64_t       { return C.ossl_slim_keys_found() }
func c_ossl_slim_keys_kept() c_int             { return C.ossl_slim_keys_kept() }
func c_ossl_slim_library() *c_OSSL_LIB_CTX     { return C.ossl_slim_library() }
func c_ossl_slim_setup(processors c_int) c_int { return C.ossl_slim_setup(processors) }
func c_ossl_ssl_ctxs_made() c_uint64_t         { return C.ossl_ssl_ctxs_made() }
func c_ossl_store_load(uri *c_char, file, what c_int, ask c_uintptr_t, loaded *c_ossl_loaded, errors *c_ulong) c_int {
	return C.ossl_store_load(uri, file, what, ask, loaded, errors)
}
func c_ossl_use(report *c_char, size c_size_t) c_int { return C.ossl_use(report, size) }
func c_ossl_verify_error(code c_long) *c_char        { return C.ossl_verify_error(code) }
func c_ossl_version() c_ulong                        { return C.ossl_version() }
