import { describe } from "@effect/vitest"
import { startServer } from "#test/harness/ServerProcess.ts"
import { describeGenerated } from "./GeneratedRequests.ts"

describe("a hundred requests an endpoint, generated from the published document,", () =>
  describeGenerated(60, () => startServer()))
