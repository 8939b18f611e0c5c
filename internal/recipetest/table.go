package recipetest

import (
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/RECIPES.md with the code, and with the outcomes that were measured")

// Document is the path of docs/RECIPES.md. Main sets it.
var document string

// A row is a line of the table.
type row struct{ client, server, versions, resumed string }

func (r row) String() string {
	return fmt.Sprintf("| %s | %s | %s | yes | %s |", r.client, r.server, r.versions, r.resumed)
}

var measured struct {
	sync.Mutex
	rows    []*row
	skipped bool // for want of a program
}

// note adds an outcome to the row of a recipe.
func note(r Recipe, version uint16, resumed bool) {
	measured.Lock()
	defer measured.Unlock()
	i := slices.IndexFunc(measured.rows, func(m *row) bool { return m.client == r.Client && m.server == r.Server })
	if i < 0 {
		i = len(measured.rows)
		measured.rows = append(measured.rows, &row{client: r.Client, server: r.Server, resumed: "no"})
	}
	m, name := measured.rows[i], strings.TrimPrefix(tls.VersionName(version), "TLS ")
	m.versions = join(m.versions, name)
	if resumed {
		m.resumed = join(strings.TrimPrefix(m.resumed, "no"), name)
	}
}

func noteSkipped() {
	measured.Lock()
	defer measured.Unlock()
	measured.skipped = true
}

func join(list, name string) string {
	if list == "" {
		return name
	}
	return list + ", " + name
}

// Main runs the tests of a module, and then compares the table that doc has for it, and the code in
// doc, with the outcomes and the module's own code. Rows whose tests were not run are not compared.
func Main(m *testing.M, module, doc string) {
	flag.Parse()
	document = doc
	status := m.Run()
	if status == 0 && len(measured.rows) > 0 {
		if err := checkTable(module); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// checkTable compares the rows that were measured with those between the module's marks, or updates
// those.
func checkTable(module string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, table, after, err := between(string(text), "<!-- measured by "+module+" -->\n", "\n\n")
	if err != nil {
		return err
	}
	lines := strings.Split(table, "\n")
	const head = 2 // the names of the columns, and a line
	var wrong []string
	for _, r := range measured.rows {
		prefix := fmt.Sprintf("| %s | %s | ", r.client, r.server)
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
		switch {
		case i >= head && lines[i] == r.String():
		case *update && i >= head:
			lines[i] = r.String()
		case *update:
			lines = append(lines, r.String())
		default:
			wrong = append(wrong, r.String())
		}
	}
	if run := flag.Lookup("test.run"); run.Value.String() == "" && len(lines)-head > len(measured.rows) && !measured.skipped {
		wrong = append(wrong, fmt.Sprintf("%d rows were measured, the table has %d", len(measured.rows), len(lines)-head))
	}
	if *update {
		slices.Sort(lines[head:])
		return os.WriteFile(document, []byte(before+strings.Join(lines, "\n")+after), 0o644)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s doesn't have what was measured (-update changes it):\n%s", document, strings.Join(wrong, "\n"))
	}
	return nil
}

// between splits text at the part between two marks. before and after have the marks.
func between(text, start, end string) (before, part, after string, err error) {
	before, rest, ok := strings.Cut(text, start)
	part, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", "", "", fmt.Errorf("%s: nothing between %q and %q", document, start, end)
	}
	return before + start, part, end + after, nil
}
