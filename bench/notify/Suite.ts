import { type BenchSuite, fullOnly } from "#bench/harness/Suite.ts"
import { crowdBare, crowdSent, oneBare, oneSent } from "./Accepting.ts"
import { arriving } from "./Arriving.ts"
import { loop, server } from "./Crowd.ts"
import { sendsAlone, sendsBesideDigests } from "./DigestHour.ts"
import { pagesAlone, pagesAndCalls } from "./EventLoop.ts"
import { fromNotice, ours, webPush, webPushEncryption } from "./Push.ts"
import { type Given, onServer, pushSizes, stage, uploadCases } from "./Stage.ts"
import { uploaded, written } from "./Upload.ts"

const largeUpload = "a raw upload of 2 GiB"

const crowd = "one message to 10,000 browsers"
const delays = "delay of the event loop while pages of 1 MB are shown"
const acceptOne = "accept for one, 200/s"
const acceptCrowd = "accept for 10,000"
const hour = "sends, 50/s, at an hour of 20,000 digests"
const arrive = "from 201 to the push service, 100/s"

export const suite: BenchSuite<Given | undefined> = {
  name: "notify",
  about:
    "encrypt and authorise a push (RFC 8291 and 8292) against the npm package web-push 3.6.7, which signs each push; deliver " +
    "a message to 10,000 browsers through the whole server against a loop of encrypt and POST without a store; accept messages " +
    "against the same rows written by bare statements; from the answer to the push service, also beside services that hang; " +
    "send while 20,000 digests are due, with a million messages held, against sends alone; " +
    "keep an upload of 2 GiB against writing and hashing as many bytes in a loop; show a page of 1 MB over " +
    "and over while calls of 80 MB are read: the latency is the delay of the event loop",
  unit: "pushes or KiB",
  stage,
  cases: [
    ...pushSizes.flatMap((bytes) => {
      const group = `${bytes} bytes`
      return [
        { name: `web-push, ${bytes}`, group, baseline: true, run: webPush(bytes) },
        fullOnly({ name: `web-push, encryption alone, ${bytes}`, group, run: webPushEncryption(bytes) }),
        {
          name: `encrypt and authorise, ${bytes}`,
          group,
          compared: "always" as const,
          run: ours(bytes)
        },
        fullOnly({ name: `from a notice, ${bytes}`, group, compared: "full", run: fromNotice(bytes) })
      ]
    }),
    fullOnly({ name: uploadCases.written, group: largeUpload, baseline: true, run: written }),
    fullOnly({ name: uploadCases.uploaded, group: largeUpload, compared: "full", run: uploaded }),
    { name: "encrypt and POST in a loop", group: crowd, baseline: true, run: onServer(loop) },
    { name: "through the server", group: crowd, compared: "always", run: onServer(server) },
    { name: "transaction for one", group: acceptOne, baseline: true, run: onServer(oneBare) },
    { name: "send to one", group: acceptOne, compared: "always", run: onServer(oneSent) },
    { name: "INSERT … SELECT for 10,000", group: acceptCrowd, baseline: true, run: onServer(crowdBare) },
    { name: "send to 10,000", group: acceptCrowd, compared: "full", run: onServer(crowdSent) },
    { name: "arrive", group: arrive, baseline: true, run: onServer(arriving(false)) },
    // The first requests that hang take a quarter of a minute until the server knows their service.
    fullOnly({
      name: "arrive beside 100 channels in trouble",
      group: arrive,
      compared: "full",
      run: onServer(arriving(true))
    }),
    // They fill the store, with rows that earlier trees do not have.
    fullOnly({ name: "sends alone", group: hour, baseline: true, run: onServer(sendsAlone) }),
    fullOnly({ name: "sends beside digests", group: hour, run: onServer(sendsBesideDigests) }),
    { name: "pages alone", group: delays, baseline: true, run: onServer(pagesAlone) },
    { name: "pages and calls of 80 MB", group: delays, compared: "full", run: onServer(pagesAndCalls) }
  ]
}
