import { describe } from "@effect/vitest"
import { itPlays } from "./RandomCalls.ts"

describe("the client, in many sequences,", () => itPlays(200))
