import { describe } from "@effect/vitest"
import { startServer } from "#test/harness/ServerProcess.ts"
import { describeGenerated } from "./GeneratedRequests.ts"

describe("a hundred requests an endpoint, generated from the published document,", () =>
  describeGenerated(60, () =>
    // However many mails are asked for, none is over the rate.
    startServer({ env: { MAIL_RATE_PER_MINUTE: "1000000", MAIL_PER_DAY: "1000000" } })
  ))
