import type { BenchSuite } from "#bench/harness/Suite.ts"
import { accepted, bareRows } from "./Accepting.ts"
import { pooled, throughServer } from "./Handing.ts"
import { restarted } from "./Queued.ts"
import { type Given, stage } from "./Stage.ts"

const handing = "signed mails to a relay"
const accepting = "accept"
const waiting = "100,000 mails wait"

export const suite: BenchSuite<Given> = {
  name: "mail",
  about:
    "signed mails of 3 KB until a relay has them and their rows say so, against nodemailer's pool with DKIM, 10 connections " +
    "each; mails accepted for tomorrow against the same rows in bare transactions (latency at 80 % of the highest rate); " +
    "memory with 100,000 that wait for a relay which refuses them, and the time from a restart to the first one",
  unit: "mails",
  rounds: 3,
  stage,
  cases: [
    { name: "nodemailer's pool", group: handing, baseline: true, run: pooled },
    { name: "through the server", group: handing, compared: "always", run: throughServer },
    { name: "bare transactions", group: accepting, baseline: true, run: bareRows },
    {
      name: "POST /send for tomorrow",
      group: accepting,
      compared: "always",
      sideBySide: true,
      run: accepted
    },
    { name: "wait, and go on after a restart", group: waiting, compared: "full", run: restarted }
  ]
}
