import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import type { Ask } from "../api/Ask.ts"
import { Refused } from "../api/Refused.ts"
import { useSession } from "../api/Session.ts"
import {
  type CompletionEvent,
  completionEvents,
  type RouterBlock,
  type TokenUsage
} from "./CompletionEvents.ts"
import { wordsFor } from "./Problems.ts"

/** A completion as far as it has come. */
export interface Completion {
  readonly phase: "asking" | "streaming" | "done" | "stopped" | "failed"
  readonly text: string
  readonly finishReason?: string
  readonly usage?: TokenUsage
  readonly router?: RouterBlock
  readonly problem?: string
  /** the API's code of the problem */
  readonly code?: string | undefined
  readonly firstTokenMillis?: number
  readonly totalMillis?: number
}

const begun: Completion = { phase: "asking", text: "" }

/** One completion at a time: a new one, a stop and leaving the room call off the one under way. */
export const useCompletion = (onOver: () => void) => {
  const { ask, onSignedOut } = useSession()
  const [completion, setCompletion] = useState<Completion>()
  const controller = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => controller.current?.abort(), [])

  const run = useCallback(
    async (body: object): Promise<void> => {
      controller.current?.abort()
      const own = new AbortController()
      controller.current = own
      const startedMillis = performance.now()
      let now: Completion = begun
      const show = (change: Partial<Completion>): void => {
        now = { ...now, ...change }
        if (controller.current === own) setCompletion(now)
      }
      show({})
      try {
        await relay(ask, body, own.signal, (event) => {
          const change = read(now, event)
          const isFirst = now.text === "" && change.text !== undefined
          show(isFirst ? { ...change, firstTokenMillis: performance.now() - startedMillis } : change)
        })
        show({ phase: now.problem === undefined ? "done" : "failed" })
      } catch (error) {
        if (error instanceof Refused && error.status === 401) {
          setCompletion(undefined)
          return onSignedOut()
        }
        if (own.signal.aborted) show({ phase: "stopped" })
        else {
          const code = error instanceof Refused ? error.code : undefined
          show({ phase: "failed", problem: wordsFor(error), code })
        }
      }
      show({ totalMillis: performance.now() - startedMillis })
      onOver()
    },
    [ask, onOver, onSignedOut]
  )
  return { completion, run, stop: () => controller.current?.abort() }
}

const relay = async (
  ask: Ask,
  body: object,
  signal: AbortSignal,
  onEvent: (event: CompletionEvent) => void
): Promise<void> => {
  const json = { ...body, stream: true, stream_options: { include_usage: true } }
  const response = await ask.open("/api/v1/chat/completions", { method: "POST", json, signal })
  for await (const event of completionEvents(response)) onEvent(event)
}

/** The changes that an event makes. */
const read = ({ text }: Completion, event: CompletionEvent): Partial<Completion> => {
  const choice = event.choices?.[0]
  const content = choice?.delta?.content ?? ""
  return {
    phase: "streaming",
    ...(content === "" ? {} : { text: text + content }),
    ...(typeof choice?.finish_reason === "string" ? { finishReason: choice.finish_reason } : {}),
    ...(event.usage === undefined || event.usage === null ? {} : { usage: event.usage }),
    ...(event.router === undefined ? {} : { router: event.router }),
    ...(event.error === undefined
      ? {}
      : { problem: `The answer broke off: ${event.error.message ?? "no reason given"}` })
  }
}
