package terminator

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// redirectConns bounds the connections of plain HTTP that are open at an address at a time.
const redirectConns = 1024

// checkRedirect checks the settings of plain HTTP.
func (c *Config) checkRedirect() error {
	switch {
	case len(c.Redirect) == 0 && c.RedirectPort != 0:
		return errors.New("redirect-port needs redirect")
	case c.RedirectPort < 0 || c.RedirectPort > 65535:
		return errors.New("redirect-port is not the number of a port")
	}
	return nil
}

// portOfTLS returns the port to which plain requests are redirected, and "" for the default one.
func (c *Config) portOfTLS() string {
	port := ""
	if c.RedirectPort != 0 {
		port = strconv.Itoa(c.RedirectPort)
	} else {
		for _, address := range slices.Backward(c.Listen) { // so that the first one counts
			if _, p, err := net.SplitHostPort(address); err == nil && !strings.HasPrefix(address, "unix:") {
				if port = p; p == "443" || p == "https" {
					break
				}
			}
		}
	}
	if port == "443" || port == "https" || port == "0" {
		return ""
	}
	return port
}

// startRedirect answers requests of plain HTTP with the place of the same resource over HTTPS.
func (s *Server) startRedirect(l net.Listener) {
	a := newAdmin(netutil.LimitListener(l, redirectConns), http.HandlerFunc(s.redirect))
	a.http.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)
	a.http.DisableGeneralOptionsHandler = true
	a.http.SetKeepAlivesEnabled(false) // each client comes once
	s.redirects = append(s.redirects, a)
	go a.serve(s.log)
}

// redirect answers a request. Only names of sites are redirected to: otherwise whoever gives a user a link
// with another host could send him anywhere.
func (s *Server) redirect(w http.ResponseWriter, r *http.Request) {
	start, g := time.Now(), s.current.Load()
	s.redirected.Add(1)
	name, ok := hostName(r.Host)
	if ok {
		if status, is := s.answerChallenge(w, r, g.plan.acme, name); is {
			s.logRedirect(g, r, status, start)
			return
		}
	}
	status := http.StatusPermanentRedirect
	switch _, known := g.names.get(name); {
	case !ok || name == "" || r.Method == http.MethodConnect || !strings.HasPrefix(r.URL.Path, "/"):
		status = http.StatusBadRequest
	case !known:
		status = http.StatusMisdirectedRequest
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		status = http.StatusMovedPermanently // which all clients know
	}
	if status < 400 {
		if strings.Contains(name, ":") { // an address of IPv6
			name = "[" + name + "]"
		}
		if port := g.plan.portOfTLS; port != "" {
			name += ":" + port
		}
		place := url.URL{Scheme: "https", Host: name, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
		w.Header().Set("Location", place.String())
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(status)
	} else {
		http.Error(w, strconv.Itoa(status)+" "+strings.ToLower(http.StatusText(status)), status)
	}
	s.logRedirect(g, r, status, start)
}

func (s *Server) logRedirect(g *generation, r *http.Request, status int, start time.Time) {
	if g.plan.accessLog {
		s.access.Info("redirect", "client", r.RemoteAddr, "method", r.Method, "host", r.Host, "path", r.URL.Path, "status", status,
			"seconds", time.Since(start).Seconds())
	}
}
