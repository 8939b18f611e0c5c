package terminator

import "fmt"

// A plan is a checked Config in parts, of which each part of a Server gets its own. Its texts are parsed.
type plan struct {
	lasting     []lasting
	places      []place
	user        string // that the process becomes, or ""
	confinement *confinement
	secrets     []string // the names of files that no client may read
	senders     senders
	limits      Limits
	accessLog   bool
	leaves      bool   // connections with this process at a restart
	portOfTLS   string // to which plain requests are redirected, or "" for the default one
	tls         tlsPlan
	acme        *acmePlan
	sites       []*sitePlan
}

// A lasting setting is one that stays while the server runs.
type lasting struct{ name, value string }

func (c *Config) lasting() []lasting {
	return []lasting{
		{"listen", fmt.Sprintf("%q", c.Listen)}, {"plain", fmt.Sprint(c.Plain)}, {"insecure-listen", fmt.Sprint(c.InsecureListen)},
		{"admin", c.Admin}, {"redirect", fmt.Sprintf("%q", c.Redirect)}, {"engine", c.Engine}, {"user", c.User},
		{"landlock", c.Landlock},
	}
}

// compile returns the plan, or an error that names the first setting that is wrong, or contradicts another
// one. It reads no file: those that a Config names may change until the plan is put into effect.
func (c *Config) compile() (p *plan, err error) {
	p = &plan{lasting: c.lasting(), user: c.User, limits: c.Limits, accessLog: c.AccessLog, leaves: c.LeaveConnections,
		portOfTLS: c.portOfTLS()}
	if p.places, err = c.compileListen(); err != nil {
		return nil, err
	}
	for _, check := range []func() error{c.checkRedirect, c.Limits.check, c.checkPlain} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if err := checkUser(c.User); err != nil {
		return nil, err
	}
	if p.senders, err = parseSenders(c.AcceptProxy); err != nil {
		return nil, err
	}
	if p.tls, err = c.compileTLS(); err != nil {
		return nil, err
	}
	if p.sites, err = c.compileSites(); err != nil {
		return nil, err
	}
	if err := c.checkACME(); err != nil {
		return nil, err
	}
	p.acme = c.acmePlan()
	p.secrets = c.secretNames(p.acme)
	p.confinement = c.confinement(p.places, p.acme)
	return p, p.confinement.check()
}
