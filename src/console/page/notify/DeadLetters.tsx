import type { Delivery } from "#schemas/notify/Message.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatInstant } from "../figures/Format.ts"
import { Toast } from "../parts/Toast.tsx"
import { useChange } from "../parts/UseChange.ts"
import { Items } from "./Items.tsx"
import { kindOf } from "./Words.ts"

const refreshMillis = 10_000

interface DeadList {
  readonly deliveries: ReadonlyArray<Delivery>
}

/** Deliveries that were given up, which can be tried again. Nothing where there are none. */
export const DeadLetters = () => {
  const change = useChange()
  const [redriven, setRedriven] = useState(0)
  const path = "/api/v1/deliveries?status=dead&limit=100"
  const { data } = useAnswer<DeadList>(path, refreshMillis, { since: redriven })
  const redrive = (deliveries: ReadonlyArray<Delivery>): void =>
    void change.run(async (ask) => {
      const json = { ids: deliveries.map(({ id }) => id) }
      const answer = await ask<{ readonly redriven: number }>("/api/v1/deliveries/redrive", {
        method: "POST",
        json
      })
      setRedriven((before) => before + answer.redriven)
    })
  const dead = data?.deliveries ?? []
  const outcome = <Toast isGood>{redriven === 0 ? "" : `Waiting again: ${redriven}.`}</Toast>
  if (dead.length === 0) return outcome
  return (
    <div class="dead-letters">
      <Items<Delivery>
        title="Given up"
        items={dead}
        keyOf={({ id }) => id}
        nameOf={(one) => `${one.subscriber.name ?? "gone"} · ${kindOf(one)}`}
        factsOf={({ endedAt, lastError }) => [
          lastError ?? "",
          ...(endedAt === null ? [] : [formatInstant(endedAt)])
        ]}
        empty=""
        actionOf={(one) => (
          <button type="button" class="plain" disabled={change.isBusy} onClick={() => redrive([one])}>
            Try again
          </button>
        )}
      />
      <button type="button" disabled={change.isBusy} onClick={() => redrive(dead)}>
        Try all again
      </button>
      {outcome}
      <Toast>{change.problem}</Toast>
    </div>
  )
}
