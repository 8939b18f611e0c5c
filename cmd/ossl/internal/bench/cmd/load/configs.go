//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
)

// All clients offer these alone, and so does every server whose configuration has a place for it.
const (
	suite13 = "TLS_AES_128_GCM_SHA256"
	group   = "X25519"
)

// The sizes of served files, and the number of their servers' workers.
const (
	smallFile = 1 << 10
	largeFile = 10 << 20
	workers   = 2
)

// backlog is the length of the queue of connections, which a Go server takes from the kernel's
// limit.
const backlog = 4096

// patientTime is longer than any measurement: no server closes an idle connection.
const patientTime = "300s"

// nginxConf returns nginx's configuration for a role. Its proxy passes on as ossl's does: over kept
// connections, with the same headers, and without temporary files.
func nginxConf(k serverKey, dir, name, port, backend string, connections int) string {
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // other users can't read the folder
	}
	location := fmt.Sprintf("root %s/files;", dir)
	if k.role == reverse {
		location = `proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto https;
      proxy_max_temp_file_size 0;`
	}
	listen := fmt.Sprintf("listen 127.0.0.1:%s ssl http2 backlog=%d;", port, backlog)
	sessions, processes := "ssl_session_tickets on; ssl_session_cache off;", workers
	if k.role == loaded {
		location, processes = fmt.Sprintf("return 200 %q;", strings.Repeat("x", smallFile)), 1
	}
	if k.role == scaled {
		location, processes = fmt.Sprintf("return 200 %q;", strings.Repeat("x", smallFile)), k.processors
		listen = strings.TrimSuffix(listen, ";") + " reuseport;"
	}
	if k.way == byID {
		sessions = "ssl_session_tickets off; ssl_session_cache shared:sessions:10m;"
	}
	if k.role == backendRole {
		listen, processes = fmt.Sprintf("listen 127.0.0.1:%s backlog=%d;", port, backlog), 1
	} else {
		listen += fmt.Sprintf(`
    ssl_certificate %[1]s/%[2]s.pem;
    ssl_certificate_key %[1]s/%[2]s.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_ecdh_curve %[3]s;
    ssl_conf_command Ciphersuites %[4]s;
    ssl_conf_command NumTickets 1;
    %[5]s`, dir, k.key, group, suite13, sessions)
	}
	return fmt.Sprintf(`daemon off;
pid %[1]s/%[2]s.pid;
error_log %[1]s/%[2]s.log error;
worker_processes %[3]d;
worker_rlimit_nofile %[4]d;
%[5]s
events { worker_connections %[4]d; }
http {
  access_log off;
  sendfile on;
  client_body_temp_path %[1]s/nginx;
  proxy_temp_path %[1]s/nginx;
  fastcgi_temp_path %[1]s/nginx;
  uwsgi_temp_path %[1]s/nginx;
  scgi_temp_path %[1]s/nginx;
  keepalive_requests 100000000;
  keepalive_timeout %[6]s;
  client_header_timeout %[6]s;
  types { text/html html; }
  upstream backend { server 127.0.0.1:%[7]s; keepalive 64; keepalive_requests 100000000; }
  server {
    %[8]s
    location / {
      %[9]s
    }
  }
}
`, dir, name, processes, connections, user, patientTime, backend, listen, location)
}

// stunnelConf returns the configuration of stunnel, which has a thread for each connection.
func stunnelConf(k serverKey, dir, port, backend string) string {
	return fmt.Sprintf(`foreground = yes
pid =
debug = err
socket = l:TCP_NODELAY=1
socket = r:TCP_NODELAY=1
[tls]
accept = 127.0.0.1:%[3]s
connect = 127.0.0.1:%[4]s
cert = %[1]s/%[2]s.pem
key = %[1]s/%[2]s.key
sslVersionMin = TLSv1.2
curves = %[5]s
ciphersuites = %[6]s
config = NumTickets:1
`, dir, k.key, port, backend, group, suite13)
}

// hitchConf returns the configuration of hitch. It has no number of tickets: a client gets two.
func hitchConf(k serverKey, dir, port, backend string) (string, error) {
	both := fmt.Sprintf("%s/hitch-%s.pem", dir, k.key)
	var text strings.Builder
	for _, ending := range []string{".key", ".pem"} {
		part, err := os.ReadFile(fmt.Sprintf("%s/%s%s", dir, k.key, ending))
		if err != nil {
			return "", err
		}
		text.Write(part)
	}
	if err := os.WriteFile(both, []byte(text.String()), 0o600); err != nil {
		return "", err
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user = \"nobody\"\ngroup = \"nogroup\"\n" // its workers refuse to be root
	}
	return fmt.Sprintf(`frontend = "[127.0.0.1]:%[1]s"
backend = "[127.0.0.1]:%[2]s"
pem-file = "%[3]s"
workers = %[4]d
backlog = %[5]d
tls-protos = TLSv1.2 TLSv1.3
ecdh-curve = "%[6]s"
ciphersuites = "%[7]s"
daemon = off
syslog = off
log-level = 1
ocsp-dir = ""
%[8]s`, port, backend, both, workers, backlog, group, suite13, user), nil
}
