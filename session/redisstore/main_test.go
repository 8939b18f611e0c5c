package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/ossl-go/ossl/session"
	"github.com/ossl-go/ossl/session/redisstore"
)

// memberEnv makes the test program run as a member of a fleet, on the store that it names: a
// socket, or a cluster's nodes, separated by commas.
const memberEnv = "OSSL_TEST_MEMBER"

func TestMain(m *testing.M) {
	if addrs := os.Getenv(memberEnv); addrs != "" {
		runMember(addrs)
		return
	}
	logging.Disable() // which has a line for each failed connection, of which there are many here
	os.Exit(m.Run())
}

// runMember executes the commands on its standard input, one per line, and answers each with a
// line.
func runMember(addrs string) {
	logging.Disable()
	ctx := context.Background()
	client := redisstore.NewClient(clientOptions(addrs))
	secrets := []session.Secret{secret}
	store, err := redisstore.New(client, redisstore.Config{Secrets: secrets, Timeout: patient.Timeout})
	if err != nil {
		panic(err)
	}
	keys, err := redisstore.NewKeys(client, fleetKeys)
	if err != nil {
		panic(err)
	}
	go keys.Run(ctx)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(argument)
		switch command {
		case "put":
			for store.Put(ctx, id(n), value(n), in(time.Hour)) != nil {
			}
			fmt.Println("ok")
		case "flush":
			for store.Stats().Queued > 0 {
				time.Sleep(time.Millisecond)
			}
			fmt.Println("ok")
		case "get", "take":
			got, err := store.Get(ctx, id(n), command == "take")
			fmt.Println(string(got) == string(value(n)), got != nil, err)
		case "serve": // "serve ids" or "serve tickets", behind the PEM of a certificate and its key in an environment variable
			fmt.Println(serve(argument, store, keys.Ring()))
		case "seals":
			held, _ := keys.Ring().Snapshot()
			if len(held) == 0 {
				fmt.Println("none")
			} else {
				fmt.Printf("%x\n", held[0].Name)
			}
		case "opens":
			held, _ := keys.Ring().Snapshot()
			names := make([]string, len(held))
			for i, k := range held {
				names[i] = fmt.Sprintf("%x", k.Name)
			}
			fmt.Println(strings.Join(names, " "))
		}
	}
}

// fleetKeys configures a fleet whose keys change fast.
var fleetKeys = redisstore.KeysConfig{
	Secrets:  []session.Secret{secret},
	Period:   5 * time.Second,
	Lifetime: time.Minute,
	Poll:     100 * time.Millisecond,
	Lead:     2500 * time.Millisecond, // a member may be stopped for so long
}

// calmKeys configures a fleet on machines that may be busy.
var calmKeys = redisstore.KeysConfig{
	Secrets:  []session.Secret{secret},
	Period:   10 * time.Second,
	Lifetime: time.Minute,
	Poll:     time.Second,
	Lead:     5 * time.Second,
}
