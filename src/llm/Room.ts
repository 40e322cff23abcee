import { HttpApi } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { CompletionsApi } from "#schemas/llm/CompletionsApi.ts"
import type { Room } from "#src/Room.ts"
import { ledger } from "./migrations/postgres/0005_Ledger.ts"
import { catalogue } from "./migrations/postgres/0006_Catalogue.ts"
import { collections } from "./migrations/postgres/0007_Collections.ts"
import { callAnswers } from "./migrations/postgres/0008_CallAnswers.ts"
import { losses } from "./migrations/postgres/0010_Losses.ts"
import { idempotency } from "./migrations/postgres/0011_Idempotency.ts"
import { calls } from "./migrations/clickhouse/0003_Calls.ts"
import { oldCallParts } from "./migrations/clickhouse/0010_OldCallParts.ts"

/** The router of model calls: catalogue, completions, money, usage. */
export const llm = {
  name: "llm",
  needs: ["clickhouse"],
  api: LlmRoomApi,
  rawApi: HttpApi.make("signalbox").add(CompletionsApi),
  migrations: {
    postgres: [ledger, catalogue, collections, callAnswers, losses, idempotency],
    clickhouse: [calls, oldCallParts]
  },
  commands: async () => (await import("./cli/Commands.ts")).commands,
  server: async () => (await import("./Server.ts")).server
} as const satisfies Room<"llm">
