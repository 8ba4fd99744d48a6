// Appends numbered records with one of three Go clients, as they are: franz-go, sarama, kafka-go.
//
// Its command line and its output are those of every program here (__init__.py).
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// send hands one record over, and blocks where the client does; it reports the outcome itself.
type send func(number int, partition int, value []byte)

var clients = map[string]func(own map[string]string) (send, error){
	"franz-go": franz,
	"sarama":   saramaAsync,
	"kafka-go": segmentio,
}

var ours = map[string]string{}

func main() {
	own := map[string]string{}
	for _, word := range os.Args[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "client", "bootstrap", "topic", "partitions", "rate", "size":
			ours[name] = value
		default:
			own[name] = value
		}
	}
	hand, err := clients[ours["client"]](own)
	if err == nil && len(own) > 0 {
		err = fmt.Errorf("these settings are not known: %v", own)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stop := make(chan struct{})
	go produce(hand, stop)
	io.Copy(io.Discard, os.Stdin)
	close(stop)
	time.Sleep(time.Minute) // What is under way is reported.
}

func produce(hand send, stop chan struct{}) {
	partitions, size := integer("partitions"), integer("size")
	each := time.Duration(float64(time.Second) * float64(size) / float64(integer("rate")))
	due := time.Now()
	for number := 0; ; number++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Until(due)):
		}
		value := make([]byte, size)
		rand.Read(value)
		copy(value, fmt.Sprintf("%d ", number))
		report("sent", number, "")
		hand(number, number%partitions, value)
		due = due.Add(each)
		if time.Since(due) > 100*time.Millisecond {
			due = time.Now() // It was blocked: that is not made up for.
		}
	}
}

func integer(name string) int {
	value, err := strconv.Atoi(ours[name])
	if err != nil {
		panic(err)
	}
	return value
}

var writing sync.Mutex

func report(what string, number int, failure string) {
	line := map[string]any{"at": float64(time.Now().UnixMilli()) / 1000, what: number}
	if failure != "" {
		line["error"] = failure
	}
	text, _ := json.Marshal(line)
	writing.Lock()
	defer writing.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

func outcome(number int, err error) {
	if err != nil {
		report("failed", number, err.Error())
	} else {
		report("acknowledged", number, "")
	}
}

func take(own map[string]string, name string) (string, bool) {
	value, is := own[name]
	delete(own, name)
	return value, is
}

func franz(own map[string]string) (send, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(ours["bootstrap"], ",")...),
		kgo.ClientID(ours["topic"]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	if bytes, is := take(own, "ProducerBatchMaxBytes"); is {
		most, _ := strconv.Atoi(bytes)
		options = append(options, kgo.ProducerBatchMaxBytes(int32(most)))
	}
	client, err := kgo.NewClient(options...)
	return func(number int, partition int, value []byte) {
		record := &kgo.Record{Topic: ours["topic"], Partition: int32(partition), Value: value}
		client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
			outcome(number, err)
		})
	}, err
}

func saramaAsync(own map[string]string) (send, error) {
	config := sarama.NewConfig()
	config.ClientID = ours["topic"]
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	if retries, is := take(own, "Producer.Retry.Max"); is {
		config.Producer.Retry.Max, _ = strconv.Atoi(retries)
	}
	if _, is := take(own, "Producer.Idempotent"); is {
		config.Producer.Idempotent = true
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Net.MaxOpenRequests = 1
		config.Version = sarama.V2_1_0_0
	}
	client, err := sarama.NewAsyncProducer(strings.Split(ours["bootstrap"], ","), config)
	if err != nil {
		return nil, err
	}
	go func() {
		for message := range client.Successes() {
			outcome(message.Metadata.(int), nil)
		}
	}()
	go func() {
		for failure := range client.Errors() {
			outcome(failure.Msg.Metadata.(int), failure.Err)
		}
	}()
	return func(number int, partition int, value []byte) {
		client.Input() <- &sarama.ProducerMessage{
			Topic:     ours["topic"],
			Partition: int32(partition),
			Value:     sarama.ByteEncoder(value),
			Metadata:  number,
		}
	}, nil
}

// Async, or each record would wait for its batch: then a writer sends one record a second.
func segmentio(own map[string]string) (send, error) {
	writer := &kafka.Writer{
		Addr:      kafka.TCP(strings.Split(ours["bootstrap"], ",")...),
		Topic:     ours["topic"],
		Transport: &kafka.Transport{ClientID: ours["topic"]},
		Async:     true,
		Balancer: kafka.BalancerFunc(func(message kafka.Message, partitions ...int) int {
			return message.WriterData.(int) % len(partitions)
		}),
		Completion: func(messages []kafka.Message, err error) {
			for _, message := range messages {
				outcome(message.WriterData.(int), err)
			}
		},
	}
	if _, is := take(own, "RequiredAcks"); is {
		writer.RequiredAcks = kafka.RequireAll
	}
	if attempts, is := take(own, "MaxAttempts"); is {
		writer.MaxAttempts, _ = strconv.Atoi(attempts)
	}
	return func(number int, _ int, value []byte) {
		// It never blocks when asynchronous, and reports what fails at once here, or later there.
		err := writer.WriteMessages(
			context.Background(), kafka.Message{Value: value, WriterData: number})
		if err != nil {
			outcome(number, err)
		}
	}, nil
}
