import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { baselineOf, conformance, type Exceptions } from "#test/mcp/ConformanceSuite.ts"
import { keyedProxy } from "#test/mcp/KeyedProxy.ts"
import { makeStage } from "../Stage.ts"

const tool = (name: string): string => `the suite's own tool ${name}`
const resource = (name: string): string => `the suite's own resource ${name}`
const prompt = (name: string): string => `the suite's own prompt ${name}`

/** For each failure the tool, prompt or resource of the suite that this server does not have. Source: decision 0032. */
const exceptions: Exceptions = {
  "server-stateless:sep-2575-server-rejects-undeclared-capability": tool("test_missing_capability"),
  "server-stateless:sep-2575-missing-capability-http-400": tool("test_missing_capability"),
  "server-stateless:sep-2575-http-server-no-independent-requests-on-stream": tool(
    "test_streaming_elicitation"
  ),
  "server-stateless:sep-2575-server-no-log-without-loglevel": tool("test_logging_tool"),
  "caching:sep-2549-prompts-list-caching-hints": prompt("test_simple_prompt"),
  "caching:sep-2549-resources-list-caching-hints": resource("test://static-text"),
  "caching:sep-2549-resources-templates-list-caching-hints": resource("test://template/{id}/data"),
  "input-required-result-basic-elicitation": tool("test_input_required_result_elicitation"),
  "input-required-result-basic-sampling": tool("test_input_required_result_sampling"),
  "input-required-result-basic-list-roots": tool("test_input_required_result_list_roots"),
  "input-required-result-request-state": tool("test_input_required_result_request_state"),
  "input-required-result-multiple-input-requests": tool("test_input_required_result_multiple_inputs"),
  "input-required-result-multi-round": tool("test_input_required_result_multi_round"),
  "input-required-result-missing-input-response": tool("test_input_required_result_elicitation"),
  "input-required-result-non-tool-request": prompt("test_input_required_result_prompt"),
  "input-required-result-result-type": tool("test_input_required_result_elicitation"),
  "input-required-result-tampered-state": tool("test_input_required_result_tampered_state"),
  "input-required-result-capability-check": tool("test_input_required_result_capabilities"),
  "input-required-result-ignore-extra-params": tool("test_input_required_result_elicitation"),
  "tools-call-simple-text": tool("test_simple_text"),
  "tools-call-image": tool("test_image_content"),
  "tools-call-audio": tool("test_audio_content"),
  "tools-call-embedded-resource": tool("test_embedded_resource"),
  "tools-call-mixed-content": tool("test_multiple_content_types"),
  "tools-call-error": tool("test_error_handling"),
  "tools-call-with-logging": tool("test_tool_with_logging"),
  "tools-call-with-progress": tool("test_tool_with_progress"),
  "tools-call-sampling": tool("test_sampling"),
  "tools-call-elicitation": tool("test_elicitation"),
  "elicitation-sep1034-defaults": tool("test_elicitation_sep1034_defaults"),
  "elicitation-sep1330-enums": tool("test_elicitation_sep1330_enums"),
  "resources-list": resource("test://static-text"),
  "resources-read-text": resource("test://static-text"),
  "resources-read-binary": resource("test://static-binary"),
  "resources-templates-read": resource("test://template/{id}/data"),
  "resources-subscribe": resource("test://watched-resource"),
  "resources-unsubscribe": resource("test://watched-resource"),
  "prompts-list": prompt("test_simple_prompt"),
  "prompts-get-simple": prompt("test_simple_prompt"),
  "prompts-get-with-args": prompt("test_prompt_with_arguments"),
  "prompts-get-embedded-resource": prompt("test_prompt_with_embedded_resource"),
  "prompts-get-with-image": prompt("test_prompt_with_image"),
  "completion-complete": prompt("test_prompt_with_arguments"),
  "logging-set-level": tool("test_tool_with_logging"),
  "sep-2164-resource-not-found": resource("test://nonexistent-resource-for-conformance-testing"),
  "server-sse-multiple-streams:server-sse-multiple-streams-session":
    "a session, which this endpoint does not have"
}

/** The scenarios of which something has to be checked: a suite that ran nothing would pass. */
const passes: Readonly<Record<string, ReadonlyArray<string>>> = {
  "2025-11-25": ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"],
  "2026-07-28": [
    "tools-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
    "http-header-validation"
  ]
}

describe("the official conformance suite", () => {
  it.live("asks of the tools of notifications nothing but what is the suite's own", () =>
    Effect.gen(function* () {
      const [baseline, proxy] = [yield* baselineOf(exceptions), yield* keyedProxy]
      const tried = Effect.gen(function* () {
        const { port } = yield* TestServer
        const stage = yield* makeStage
        proxy.to(port, yield* stage.projectKey())
        const check = Effect.fnUntraced(function* ([version, needed]: [string, ReadonlyArray<string>]) {
          const asked = ["--url", `${proxy.url}/mcp`, "--requirements", version]
          const { code, said } = yield* Effect.promise(() =>
            conformance([...asked, "--expected-failures", baseline])
          )
          assert.strictEqual(code, 0, said)
          for (const scenario of needed)
            assert.match(said, new RegExp(`✓ ${scenario}: [1-9]\\d* passed, 0 failed`))
        })
        yield* Effect.forEach(Object.entries(passes), check, { concurrency: "unbounded" })
      })
      // Both together ask more than a key's rate.
      const settings = {
        rooms: new Set(["accounts", "notify"]),
        baseUrl: proxy.url,
        limits: { ratePerMinute: 6_000, rateBurst: 6_000 }
      }
      yield* Effect.provide(tried, TestServer.own(settings))
    }).pipe(Effect.scoped)
  )
})
