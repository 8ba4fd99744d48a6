// Appends numbered records with kafkajs, as it is.
//
// Its command line and its output are those of every program here (__init__.py).
'use strict';
const { randomBytes } = require('node:crypto');
const { writeSync } = require('node:fs');
const { Kafka, logLevel } = require('kafkajs');

const words = Object.fromEntries(process.argv.slice(2).map((word) => {
  const split = word.indexOf('=');
  return [word.slice(0, split), word.slice(split + 1)];
}));
const { client: _, bootstrap, topic, partitions, rate, size, ...own } = words;
const settings = Object.fromEntries(
  Object.entries(own).map(([name, text]) => [name, JSON.parse(text)]));

function report(what, number, failure) {
  const line = { at: Date.now() / 1000, [what]: number };
  writeSync(1, JSON.stringify(failure ? { ...line, error: String(failure) } : line) + '\n');
}

async function main() {
  const kafka = new Kafka({
    clientId: topic,
    brokers: bootstrap.split(','),
    logLevel: logLevel.WARN,
    logCreator: () => ({ log }) => console.error(JSON.stringify(log)),
    ...settings,
  });
  const producer = kafka.producer(settings);
  await producer.connect();
  const each = 1000 * Number(size) / Number(rate);
  let number = 0;
  let due = performance.now();
  // What is due goes into one send, which nobody waits for: else one request is under way at most.
  const timer = setInterval(() => {
    const numbers = [];
    for (; due <= performance.now(); due += each) {
      numbers.push(number++);
    }
    if (numbers.length === 0) {
      return;
    }
    const messages = numbers.map((count) => {
      const value = randomBytes(Number(size));
      value.write(`${count} `);
      report('sent', count);
      return { partition: count % Number(partitions), value };
    });
    producer.send({ topic, messages }).then(
      () => numbers.forEach((count) => report('acknowledged', count)),
      (error) => numbers.forEach((count) => report('failed', count, error)));
  }, 10);
  process.stdin.resume();
  process.stdin.on('end', () => {
    clearInterval(timer);
    setTimeout(() => process.exit(), 60000);  // What is under way is reported.
  });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
