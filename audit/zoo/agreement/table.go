package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// table writes the agreement as Markdown, and returns the number of disagreements that are not
// decided.
func table(w io.Writer, rows []row) (undecided int) {
	fmt.Fprintf(w, "Servers: %d.\n\n", len(rows))
	fmt.Fprintln(w, "| fact | testssl.sh agrees | differs | sslyze agrees | differs |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	var differences []difference
	for _, fact := range names(rows) {
		cells := []string{fact}
		asked := false
		for _, tool := range []string{"testssl.sh", "sslyze"} {
			agree, differ := 0, 0
			for _, r := range rows {
				ours, theirs := r.ours[fact], r.of(tool)[fact]
				switch {
				case ours == "" && theirs == "" || theirs == "":
				case ours == theirs:
					agree++
				default:
					differ++
					differences = append(differences, difference{r.server.Name, fact, tool, ours, theirs})
				}
			}
			asked = asked || agree+differ > 0
			cells = append(cells, fmt.Sprint(agree), fmt.Sprint(differ))
		}
		if asked {
			fmt.Fprintln(w, "| "+strings.Join(cells, " | ")+" |")
		}
	}
	fmt.Fprintf(w, "\n## Disagreements\n\nEvery one, and the fact that decides it.\n\n")
	fmt.Fprintln(w, "| server | fact | ossl | other | right | why |\n|---|---|---|---|---|---|")
	merged := map[string][]difference{}
	var order []string
	for _, d := range differences {
		right, why := d.decide()
		if right == "" {
			undecided++
			right, why = "**undecided**", ""
		}
		key := strings.Join([]string{d.fact, show(d.ours), d.tool + ": " + show(d.theirs), right, why}, " | ")
		if d.ours != "" && strings.HasPrefix(d.fact, "suites") {
			key = strings.Join([]string{d.fact, "", d.tool + ": " + against(d.ours, d.theirs), right, why}, " | ")
		}
		if merged[key] == nil {
			order = append(order, key)
		}
		merged[key] = append(merged[key], d)
	}
	for _, key := range order {
		var servers []string
		for _, d := range merged[key] {
			servers = append(servers, d.server)
		}
		fmt.Fprintf(w, "| %s | %s |\n", strings.Join(servers, ", "), key)
	}
	costs(w, rows)
	return undecided
}

func (r row) of(tool string) answers {
	if tool == "sslyze" {
		return r.sslyze
	}
	return r.testssl
}

func show(value string) string {
	if value == "" {
		return "not tested"
	}
	return value
}

// against says in which elements two lists differ.
func against(ours, theirs string) string {
	a, b := strings.Fields(ours), strings.Fields(theirs)
	var parts []string
	for _, one := range a {
		if !slices.Contains(b, one) {
			parts = append(parts, "without "+one)
		}
	}
	for _, one := range b {
		if !slices.Contains(a, one) {
			parts = append(parts, "with "+one)
		}
	}
	return strings.Join(parts, ", ")
}

// costs writes the time that each tool took.
func costs(w io.Writer, rows []row) {
	var seconds [3][]float64
	connections := 0
	for _, r := range rows {
		for i := range seconds {
			seconds[i] = append(seconds[i], r.seconds[i])
		}
		connections = max(connections, r.connections)
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(w, "\n## Time\n\n| | median, s | longest, s |\n|---|---|---|")
	for i, tool := range []string{"ossl check", "testssl.sh", "sslyze"} {
		slices.Sort(seconds[i])
		fmt.Fprintf(w, "| %s | %.1f | %.1f |\n", tool, seconds[i][len(rows)/2], seconds[i][len(rows)-1])
	}
	fmt.Fprintf(w, "\nossl check made at most %d connections to a server.\n", connections)
}
