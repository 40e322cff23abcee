import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { ask } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import type { Caller } from "../Caller.ts"
import { onStage, type Stage } from "../completions/RoutedServer.ts"
import { isStreamed, plainSteps, tokens } from "../completions/Scripts.ts"
import { done, event, finishes, says, streamOf, tells } from "../upstream/Recordings.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { type AskedOf, chunk, lastChunk, type Step, streamHead } from "../upstream/ScriptedUpstream.ts"
import { dearCost, dearPrices, maxTokensOf, UpstreamAccount } from "./UpstreamAccount.ts"

const dear = "dear/model"
const thinking = "dear/thinking"
const gratis = "dear/gratis"
const listed = { pricing: dearPrices, context_length: 200_000 }
const models = [
  modelEntry(dear, listed),
  modelEntry(thinking, { ...listed, supported_parameters: ["max_tokens", "tools", "reasoning"] }),
  modelEntry(gratis, { pricing: { prompt: "0", completion: "0" } })
]

/** The answer of a call, and its bill. */
interface Billed {
  readonly prompt: number
  readonly output: number
  /** USD beside the tokens */
  readonly fee?: number
}

/** An upstream that answers at once, heeds `max_tokens`, and says what it bills. */
const billing =
  (account: UpstreamAccount, { fee = 0, output, prompt }: Billed, text = "Yes") =>
  (asked: AskedOf): ReadonlyArray<Step> => {
    const given = Math.min(output, maxTokensOf(asked) ?? output)
    const cost = account.bill(Number((dearCost(prompt, given) + fee).toFixed(12)))
    const usage = { ...tokens(prompt, given), cost }
    if (!isStreamed(asked)) return plainSteps(text, { usage })
    return [{ send: streamOf([says(text), finishes(), tells(usage), done]) }]
  }

/** One after the other is no attack: all at once, and the answers' statuses. */
const atOnce = async (count: number, call: () => Promise<{ readonly status: number }>) =>
  (await Promise.all(Array.from({ length: count }, call))).map(({ status }) => status)

/** Says something and leaves when it has seen enough. */
const leaves = async (
  { server }: Stage,
  { key }: Caller,
  body: object,
  isEnough: (seen: string) => boolean
): Promise<void> => {
  const leaving = new AbortController()
  const response = await fetch(`${server.url}/api/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: leaving.signal
  })
  let seen = ""
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? assert.fail("no body")) {
    seen += decoder.decode(bytes, { stream: true })
    if (isEnough(seen)) break
  }
  leaving.abort()
}

interface Attack {
  readonly name: string
  /** USD on the attacker's account */
  readonly balance: number
  /** USD that the platform lost on it once */
  readonly was: number
  /** the upstream bills with its usage, and the ledger has the same bill to the last digit */
  readonly isTold: boolean
  readonly run: (stage: Stage, attacker: Caller, account: UpstreamAccount) => Promise<void>
}

const user = (content: unknown) => [{ role: "user", content }]

const attacks: ReadonlyArray<Attack> = [
  {
    name: "100 calls at once with a PDF by its address",
    balance: 1,
    was: 67.4,
    isTold: true,
    run: async ({ play }, { say }, account) => {
      play({ [dear]: billing(account, { prompt: 120_000, output: 5 }) })
      const file = { type: "file", file: { filename: "a.pdf", file_data: "https://a.example/a.pdf" } }
      await atOnce(100, () => say(dear, "", { messages: user([file]), max_tokens: 5 }))
    }
  },
  {
    name: "streams without max_tokens that think unseen",
    balance: 1,
    was: 13.4,
    isTold: true,
    run: async ({ play }, { say }, account) => {
      play({ [thinking]: billing(account, { prompt: 10, output: 10_000 }) })
      await atOnce(12, () => say(thinking, "Think", { stream: true }))
    }
  },
  {
    name: "a rare script, of which a character is three tokens",
    balance: 2,
    was: 12.4,
    isTold: true,
    run: async ({ play }, { say }, account) => {
      const yi = Array.from({ length: 16_000 }, (_, at) => String.fromCodePoint(0xa000 + (at % 1_160)))
      const text = yi.join("")
      play({ [dear]: billing(account, { prompt: countTokens(text), output: 1 }) })
      await atOnce(10, () => say(dear, text, { max_tokens: 1 }))
    }
  },
  {
    name: "plugins that search the web",
    balance: 0.05,
    was: 5.95,
    isTold: true,
    run: async ({ play }, { say }, account) => {
      play({ [dear]: billing(account, { prompt: 20, output: 5, fee: 0.06 }) })
      await atOnce(100, () => say(dear, "News?", { plugins: [{ id: "web" }], max_tokens: 5 }))
    }
  },
  {
    name: "plugins of a free model, without any credits",
    balance: 0,
    was: 4,
    isTold: true,
    run: async ({ play }, { say }, account) => {
      play({ [gratis]: billing(account, { prompt: 0, output: 0, fee: 0.04 }) })
      for (const more of [
        { plugins: [{ id: "web" }] },
        { web_search_options: {} },
        { tools: [{ type: "openrouter:web_search" }] }
      ]) {
        const statuses = await atOnce(34, () => say(gratis, "News?", { ...more, max_tokens: 5 }))
        assert.deepStrictEqual([...new Set(statuses)], [402], JSON.stringify(more))
      }
    }
  },
  {
    name: "a client that leaves at the last word it sees, before the usage",
    balance: 5,
    was: 1.8,
    isTold: true,
    run: async (stage, attacker, account) => {
      const steps = (): ReadonlyArray<Step> => {
        const usage = { ...tokens(10, 15_000), cost: account.bill(dearCost(10, 15_000)) }
        return [
          { send: streamHead },
          { send: chunk(says("Yes.")) },
          { pauseMillis: 300 },
          { send: chunk(finishes()) },
          { send: chunk(tells(usage)) },
          { send: chunk(done) },
          { send: lastChunk }
        ]
      }
      stage.play({ [thinking]: steps })
      const body = { model: thinking, messages: user("Think"), stream: true, max_tokens: 20_000 }
      await leaves(stage, attacker, body, (seen) => seen.includes("Yes."))
    }
  },
  {
    name: "an answer that used up its tokens thinking",
    balance: 5,
    was: 1.2,
    isTold: true,
    run: async ({ play }, { collect, say }, account) => {
      const empty = (asked: AskedOf): ReadonlyArray<Step> => {
        const usage = { ...tokens(10, 5_000), cost: account.bill(dearCost(10, 5_000)) }
        if (!isStreamed(asked)) return plainSteps("", { usage, finish: "length" })
        return [{ send: streamOf([event({ choices: [] }), finishes("length"), tells(usage), done]) }]
      }
      play({ [thinking]: empty })
      const collection = await collect([thinking])
      for (const stream of [false, true]) {
        const answer = await say(collection, "Think", { stream, max_tokens: 5_000 })
        assert.deepStrictEqual([answer.status, answer.finishReason, answer.text], [200, "length", ""])
        assert.isAbove(answer.router?.charged_usd ?? 0, 0.6)
      }
    }
  },
  {
    name: "a plain call that is left once its prompt was read",
    balance: 10,
    was: 1.5,
    isTold: false,
    run: async ({ listen, play }, { say }, account) => {
      const asked = listen()
      const text = "many words ".repeat(25_000)
      play({
        [dear]: () => {
          account.bill(dearCost(countTokens(text), 0))
          return [{ silence: true }]
        }
      })
      const leaving = new AbortController()
      const left = say(dear, text, { max_tokens: 100 }, { signal: leaving.signal })
      await until("it is asked", async () => (asked().length === 1 ? undefined : "not yet"))
      leaving.abort()
      await Promise.allSettled([left])
    }
  }
]

/** Pico-USD as text. */
interface Booked {
  readonly charged: string
  readonly lost: string
}

const server = ScriptedServer.layer(models, { limits: { usageWaitMillis: 1_000 } })

layer(server, { excludeTestServices: true })("what an attack costs the platform", (it) => {
  for (const { balance, isTold, name, run, was } of attacks) {
    it.effect(`is a tenth of what it was at most, and in the ledger: ${name}`, () =>
      Effect.flatMap(SqlClient, (sql) =>
        onStage(async (stage) => {
          await ask(stage.server, "PUT", "/api/v1/admin/markups/dear", { json: { percent: 0 } })
          const account = new UpstreamAccount()
          const attacker = await stage.caller(balance)
          await run(stage, attacker, account)
          await until("no call is under way", async () => {
            const metrics = await (await fetch(`${stage.server.url}/metrics`)).text()
            return /^signalbox_model_requests_in_flight 0$/m.test(metrics) ? undefined : "some are"
          })
          const verdict = (await ask(stage.server, "GET", "/api/v1/admin/ledger/verify")).body
          assert.deepInclude(verdict, { ok: true })
          const [booked] = await Effect.runPromise(sql<Booked>`SELECT
            coalesce(sum(amount) FILTER (WHERE kind = 'charge'), 0)::text AS charged,
            coalesce(sum(amount) FILTER (WHERE debit LIKE 'loss%'), 0)::text AS lost
            FROM entries WHERE user_id = ${attacker.userId}`)
          const [charged, lost] = [BigInt(booked?.charged ?? 0), BigInt(booked?.lost ?? 0)]
          const seen = `billed ${account.billed}, charged ${charged}, booked as loss ${lost}`
          assert.isAtMost(Number(account.billed - charged) / 1e12, was / 10, seen)
          if (isTold) assert.strictEqual(charged + lost, account.billed, seen)
          assert.isAtMost(Number(charged) / 1e12, balance, seen)
        })
      )
    )
  }
})
