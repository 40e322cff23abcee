import { describe } from "@effect/vitest"
import { itPlays } from "./RandomCalls.ts"

describe("the client", () => itPlays(30))
