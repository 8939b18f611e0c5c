package gofarm

import "testing"

// TestRename: names get the prefix in code, in strings and Go files only if they are C's for sure.
func TestRename(t *testing.T) {
	names := map[string]bool{"ossl_new": true, "init": true}
	for _, c := range []struct{ file, text, want string }{
		{"a.c", "init(ossl_new, init2, xossl_new);", "osslstd_init(osslstd_ossl_new, init2, xossl_new);"},
		{"a.h", `x = "init \" ossl_new" init;`, `x = "init \" osslstd_ossl_new" osslstd_init;`},
		{"a.c", "'\"' init\n", "'\"' osslstd_init\n"},
		{"a.c", "\"init\\\n\" init", "\"osslstd_init\\\n\" osslstd_init"}, // no string, since its line is over
		{"a.go", "C.init(init, ossl_new, AC.init)", "C.osslstd_init(init, osslstd_ossl_new, AC.init)"},
	} {
		if got := string(renameC(c.file, []byte(c.text), names)); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.file, c.text, got, c.want)
		}
	}
}
