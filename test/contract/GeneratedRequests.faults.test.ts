import { describe } from "@effect/vitest"
import { startOnStoresOfRun } from "#test/harness/ServerOnRun.ts"
import { describeGenerated } from "./GeneratedRequests.ts"

describe("a hundred requests an endpoint, generated from the published document,", () =>
  describeGenerated(60, () => startOnStoresOfRun()))
