package terminator_test

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl/cmd/ossl/internal/terminator"
)

// TestInteropAliases: PHP and a shell script in lighttpd don't mistake a client's headers for the
// proxy's, whatever characters are in the places of the hyphens.
func TestInteropAliases(t *testing.T) {
	for _, program := range []string{"lighttpd", "php-cgi", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	lighttpd, _ := exec.LookPath("lighttpd")
	php, _ := exec.LookPath("php-cgi")
	shell, _ := exec.LookPath("sh")
	w, free := newWorld(t), listen(t)
	_, port, err := net.SplitHostPort(free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	root := w.folder(map[string]string{
		"a.php": "<?php foreach ($_SERVER as $k => $v) if (strpos($k, 'HTTP_') === 0) echo \"$k=$v\\n\";",
		"a.sh":  "printf 'Content-Type: text/plain\\n\\n'; env | grep '^HTTP_'\n",
	})
	config := filepath.Join(w.dir, "lighttpd.conf")
	w.write(config, `server.modules = ("mod_cgi")
server.bind = "127.0.0.1"
server.port = `+port+`
server.document-root = "`+root+`"
cgi.assign = (".php" => "`+php+`", ".sh" => "`+shell+`")
`)
	cmd := exec.Command(lighttpd, "-D", "-f", config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // until lighttpd listens
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = conn.Close()
			break
		} else if time.Now().After(late) {
			t.Fatal(err)
		}
	}
	for _, underscores := range []bool{false, true} {
		r := w.start(w.config("ossl", terminator.Site{
			Backend: terminator.Backend{To: "http://127.0.0.1:" + port, UnderscoreHeaders: underscores}}))
		for _, mark := range "!#$%&'*+.^_`|~-" { // of tokens: RFC 9110, section 5.6.2
			var header strings.Builder
			for _, name := range []string{"Client-Cert", "Client-Cert-Chain", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"} {
				header.WriteString(strings.ReplaceAll(name, "-", string(mark)) + ": forged\r\n")
			}
			for _, path := range []string{"/a.php", "/a.sh"} {
				_, got := r.send(t, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nOther: x\r\n"+header.String()+"\r\n")
				if strings.Contains(got, "forged") || !strings.Contains(got, "HTTP_X_FORWARDED_PROTO=https") ||
					!strings.Contains(got, "HTTP_OTHER=x") {
					t.Errorf("%s, %q, underscores %v: the program got %q", path, mark, underscores, got)
				}
			}
		}
	}
}
