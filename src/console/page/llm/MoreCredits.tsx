import type { Stats } from "#schemas/accounts/AccountApi.ts"
import type { CallingKey, TopUp } from "#schemas/llm/Credits.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatUsd } from "../figures/Format.ts"
import { Code } from "../parts/Code.tsx"
import { Field, Form } from "../parts/Form.tsx"
import { Toast } from "../parts/Toast.tsx"
import { useChange } from "../parts/UseChange.ts"

/** Sources of credits: a command for all users, a form for administrators. */
export const MoreCredits = ({ onAdded }: { onAdded(): void }) => {
  const { data: account } = useAnswer<Pick<Stats, "user">>("/api/v1/stats")
  const { data: key } = useAnswer<CallingKey>("/api/v1/key")
  if (account === undefined || key === undefined) return null
  const { id, role } = account.user
  const mayAdd = role === "admin" && key.data.kind !== "router"
  return (
    <div class="more-credits">
      {mayAdd && <TopUpForm userId={id} onAdded={onAdded} />}
      <p class="hint">
        {mayAdd
          ? "The same as a command, for any user:"
          : "An administrator of this server adds credits, in the console or with:"}
      </p>
      <Code of="command" text={`npm run -s signalbox -- credits topup ${id} 20`} />
    </div>
  )
}

interface TopUpFormProps {
  readonly userId: string
  onAdded(): void
}

/** One top-up has one name until it is known to be booked: sent twice, it is booked once. */
const TopUpForm = ({ onAdded, userId }: TopUpFormProps) => {
  const [usd, setUsd] = useState("20")
  const [added, setAdded] = useState<number>()
  const [pending, setPending] = useState<{ readonly name: string; readonly usd: number }>()
  const change = useChange(
    ({ message }) => `${message}. Try again: what was added already is not added twice.`
  )
  const add = async (amount: number): Promise<void> => {
    const { name } = pending?.usd === amount ? pending : { name: newName() }
    setPending({ name, usd: amount })
    setAdded(undefined)
    await change.run(async (ask) => {
      const json = { user_id: userId, amount_usd: amount }
      const request = { method: "POST", json, idempotencyKey: name } as const
      const { amount_usd } = await ask<TopUp>("/api/v1/credits/topups", request)
      setPending(undefined)
      setAdded(amount_usd)
      onAdded()
    })
  }
  return (
    <Form change={change} onSubmit={() => void add(Number(usd))}>
      <Field label="Amount in USD" hint="What calls may cost; nothing is paid here">
        {(id) => (
          <div class="field-row">
            <input
              id={id}
              type="number"
              required
              min={0.000_001}
              max={1_000_000_000}
              step="any"
              value={usd}
              onInput={(event) => setUsd(event.currentTarget.value)}
            />
            <button type="submit" disabled={change.isBusy}>
              Add credits
            </button>
          </div>
        )}
      </Field>
      <Toast isGood>{added === undefined ? "" : `${formatUsd(added)} added.`}</Toast>
      <Toast>{change.problem}</Toast>
    </Form>
  )
}

/** `crypto.randomUUID` is there over https alone. */
const newName = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    ""
  )
