import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { baselineOf, conformance, type Exceptions } from "./ConformanceSuite.ts"
import { diagnosticRooms } from "./DiagnosticRoom.ts"
import { keyedProxy } from "./KeyedProxy.ts"

/** The official conformance suite against the diagnostic tools. Source: decision 0027. */
const onlyTools = "the endpoints have tools, and neither prompts, resources, completion nor logging"
const noStream = "an answer is one JSON document: nothing is sent before it or beside it"
const noInput = "every result is complete: no tool asks its client for input in the middle of a call"
const noSession = "the endpoint has no sessions, which the suite warns about"

const exceptions: Exceptions = {
  "logging-set-level": onlyTools,
  "completion-complete": onlyTools,
  "resources-list": onlyTools,
  "resources-read-text": onlyTools,
  "resources-read-binary": onlyTools,
  "resources-templates-read": onlyTools,
  "resources-subscribe": onlyTools,
  "resources-unsubscribe": onlyTools,
  "sep-2164-resource-not-found": onlyTools,
  "prompts-list": onlyTools,
  "prompts-get-simple": onlyTools,
  "prompts-get-with-args": onlyTools,
  "prompts-get-embedded-resource": onlyTools,
  "prompts-get-with-image": onlyTools,
  "caching:sep-2549-prompts-list-caching-hints": onlyTools,
  "caching:sep-2549-resources-list-caching-hints": onlyTools,
  "caching:sep-2549-resources-templates-list-caching-hints": onlyTools,
  "tools-call-with-logging": noStream,
  "tools-call-with-progress": noStream,
  "tools-call-sampling": noStream,
  "tools-call-elicitation": noStream,
  "elicitation-sep1034-defaults": noStream,
  "elicitation-sep1330-enums": noStream,
  "server-sse-polling": noStream,
  "server-sse-multiple-streams:server-sse-multiple-streams-session": noSession,
  "input-required-result-basic-elicitation": noInput,
  "input-required-result-basic-sampling": noInput,
  "input-required-result-basic-list-roots": noInput,
  "input-required-result-request-state": noInput,
  "input-required-result-multiple-input-requests": noInput,
  "input-required-result-multi-round": noInput,
  "input-required-result-missing-input-response": noInput,
  "input-required-result-non-tool-request": noInput,
  "input-required-result-result-type": noInput,
  "input-required-result-ignore-extra-params": noInput,
  "input-required-result-tampered-state": noInput,
  "input-required-result-capability-check": noInput
}

/** The scenarios of which something has to be checked, in each version: a suite that ran nothing would pass. */
const passes: Readonly<Record<string, ReadonlyArray<string>>> = {
  "2025-06-18": ["server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error"],
  "2025-11-25": [
    "server-initialize",
    "ping",
    "tools-list",
    "json-schema-2020-12",
    "dns-rebinding-protection"
  ],
  "2026-07-28": [
    "server-stateless",
    "tools-list",
    "tools-call-mixed-content",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "http-header-validation",
    "http-custom-header-server-validation"
  ]
}

describe("the official conformance suite", () => {
  it.live("passes in every scenario about the protocol and tools that needs no stream", () =>
    Effect.gen(function* () {
      const [baseline, proxy] = [yield* baselineOf(exceptions), yield* keyedProxy]
      yield* Effect.gen(function* () {
        const { adminKey, port } = yield* TestServer
        proxy.to(port, adminKey)
        for (const [version, needed] of Object.entries(passes)) {
          const { code, said } = yield* Effect.promise(() =>
            conformance([
              "--url",
              `${proxy.url}/mcp`,
              "--suite",
              "all",
              "--spec-version",
              version,
              "--expected-failures",
              baseline
            ])
          )
          assert.strictEqual(code, 0, said)
          for (const scenario of needed)
            assert.match(said, new RegExp(`✓ ${scenario}: [1-9]\\d* passed, 0 failed`))
        }
        const sessions = yield* Effect.promise(() =>
          conformance(["--url", `${proxy.url}/api/mcp`, "--scenario", "server-initialize"])
        )
        assert.strictEqual(sessions.code, 0, sessions.said)
      }).pipe(
        Effect.provide(
          TestServer.own(
            { rooms: new Set(["accounts", "diagnostic"]), baseUrl: proxy.url },
            { rooms: diagnosticRooms }
          )
        )
      )
    }).pipe(Effect.scoped)
  )
})
