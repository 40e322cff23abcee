import type { BenchSuite } from "#bench/harness/Suite.ts"
import { fromNotice, ours, webPush, webPushEncryption } from "./Push.ts"

/** A push of a sentence, and the longest one that push services take. */
const sizes = [300, 3_990]

export const suite: BenchSuite = {
  name: "notify",
  about:
    "encrypt and authorise a push (RFC 8291 and 8292) against the npm package web-push 3.6.7, on one core; web-push signs " +
    "each push, this server signs once per push service",
  unit: "pushes",
  cases: sizes.flatMap((bytes) => {
    const group = `${bytes} bytes`
    return [
      { name: `web-push, ${bytes}`, group, baseline: true, run: webPush(bytes) },
      { name: `web-push, encryption alone, ${bytes}`, group, run: webPushEncryption(bytes) },
      { name: `encrypt and authorise, ${bytes}`, group, compared: "always", run: ours(bytes) },
      { name: `from a notice, ${bytes}`, group, compared: "full", run: fromNotice(bytes) }
    ]
  })
}
