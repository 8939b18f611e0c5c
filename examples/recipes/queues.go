package recipes

import (
	"net"
	"net/url"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/rabbitmq/amqp091-go"

	"github.com/ossl-go/ossl"
)

// AMQP connects to RabbitMQ. The scheme of the URL is amqp, since amqps would add crypto/tls.
func AMQP(url string, dialer *ossl.Dialer) (*amqp091.Connection, error) {
	return amqp091.DialConfig(url, amqp091.Config{Dial: func(network, addr string) (net.Conn, error) {
		conn, err := dialer.Dial(network, addr)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(10 * time.Second)) // for AMQP's handshake, which clears it
		}
		return conn, err
	}})
}

// MQTT returns a client of a broker. The connection is TLS whatever the scheme of the URL is.
func MQTT(broker string, dialer *ossl.Dialer) mqtt.Client {
	return mqtt.NewClient(mqtt.NewClientOptions().AddBroker(broker).SetCustomOpenConnectionFn(
		func(uri *url.URL, _ mqtt.ClientOptions) (net.Conn, error) { return dialer.Dial("tcp", uri.Host) },
	))
}
