package recipes_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/rabbitmq/amqp091-go"

	"github.com/ossl-go/ossl/examples/recipes"
	"github.com/ossl-go/ossl/internal/recipetest"
)

// TestAMQP uses RabbitMQ, whose TLS is Erlang's. Erlang's servers keep sessions by ID for TLS 1.2,
// and none for TLS 1.3 unless they are configured to.
func TestAMQP(t *testing.T) {
	recipetest.Recipe{
		Client: "amqp091-go", Server: "rabbitmq-server",
		Start: startRabbit,
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			conn, err := recipes.AMQP("amqp://guest:guest@"+addr+"/", recipes.Dialer(config))
			if err != nil {
				return err
			}
			return errors.Join(talkAMQP(ctx, conn), conn.Close())
		},
	}.Run(t)
}

func talkAMQP(ctx context.Context, conn *amqp091.Connection) error {
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	queue, err := channel.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return err
	}
	deliveries, err := channel.ConsumeWithContext(ctx, queue.Name, "", true, true, false, false, nil)
	if err != nil {
		return err
	}
	if err := channel.PublishWithContext(ctx, "", queue.Name, true, false, amqp091.Publishing{Body: []byte("hello")}); err != nil {
		return err
	}
	if got, ok := <-deliveries; !ok || string(got.Body) != "hello" {
		return fmt.Errorf("received %q, %v", got.Body, ok)
	}
	return nil
}

func startRabbit(t *testing.T, site *recipetest.Site) {
	// The script in PATH would change to another user.
	program := recipetest.Program(t, "rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server")
	if real := "/usr/lib/rabbitmq/bin/rabbitmq-server"; exists(real) {
		program = real
	}
	dir, port := site.Files.Dir, recipetest.FreePort(t)
	conf := filepath.Join(dir, "rabbitmq.conf")
	text := fmt.Sprintf(`listeners.tcp = none
listeners.ssl.1 = 127.0.0.1:%s
ssl_options.cacertfile = %s
ssl_options.certfile = %s
ssl_options.keyfile = %s
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
log.console = true
log.file = false
`, port, site.Files.CA, site.Files.Cert, site.Files.Key)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(dir, "plugins")
	if err := os.WriteFile(plugins, []byte("[].\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recipetest.Serve(t, "Server startup complete", []string{
		"HOME=" + dir, "RABBITMQ_CONFIG_FILE=" + conf, "RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "none"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + plugins, "RABBITMQ_MNESIA_BASE=" + dir, "RABBITMQ_LOG_BASE=" + dir,
		"RABBITMQ_PID_FILE=" + filepath.Join(dir, "pid"), "RABBITMQ_NODENAME=rabbit" + port + "@localhost",
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_DIST_PORT=" + recipetest.FreePort(t),
		"ERL_EPMD_PORT=" + recipetest.FreePort(t), "ERL_EPMD_ADDRESS=127.0.0.1",
	}, "/bin/sh", "-c", `epmd & exec "$0"`, program) // the daemon that Erlang would start would outlive the test
	recipetest.Forward(t, site.Listener, "127.0.0.1:"+port)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestMQTT(t *testing.T) {
	recipetest.Recipe{
		Client: "paho.mqtt.golang", Server: "mosquitto",
		Start: func(t *testing.T, site *recipetest.Site) {
			port, conf := recipetest.FreePort(t), filepath.Join(site.Files.Dir, "mosquitto.conf")
			text := fmt.Sprintf("user root\nallow_anonymous true\nlistener %s 127.0.0.1\n"+
				"cafile %s\ncertfile %s\nkeyfile %s\nrequire_certificate true\n",
				port, site.Files.CA, site.Files.Cert, site.Files.Key)
			if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			recipetest.Serve(t, " running", nil, recipetest.Program(t, "mosquitto"), "-c", conf)
			recipetest.Forward(t, site.Listener, "127.0.0.1:"+port)
		},
		Use: func(ctx context.Context, config *tls.Config, addr string) error {
			return talkMQTT(ctx, recipes.MQTT("ssl://"+addr, recipes.Dialer(config)))
		},
	}.Run(t)
}

func talkMQTT(ctx context.Context, client mqtt.Client) error {
	wait := func(token mqtt.Token) error {
		select {
		case <-token.Done():
			return token.Error()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := wait(client.Connect()); err != nil {
		return err
	}
	defer client.Disconnect(0)
	messages := make(chan string, 1)
	err := wait(client.Subscribe(topic, 1, func(_ mqtt.Client, m mqtt.Message) { messages <- string(m.Payload()) }))
	if err != nil {
		return err
	}
	if err := wait(client.Publish(topic, 1, false, "hello")); err != nil {
		return err
	}
	select {
	case got := <-messages:
		if got != "hello" {
			return fmt.Errorf("received %q", got)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
