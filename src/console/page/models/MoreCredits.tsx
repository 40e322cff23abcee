import { useId, useState } from "preact/hooks"
import { Refused } from "../api/Refused.ts"
import type { CallingKey, OwnAccount, TopUp } from "../api/Contract.ts"
import { useSession } from "../api/Session.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatUsd } from "../figures/Format.ts"
import { Code } from "../parts/Code.tsx"

/** Sources of credits: a command for all users, a form for administrators. */
export const MoreCredits = ({ onAdded }: { onAdded(): void }) => {
  const { data: account } = useAnswer<OwnAccount>("/api/v1/stats")
  const { data: key } = useAnswer<CallingKey>("/api/v1/key")
  if (account === undefined || key === undefined) return null
  const { id, role } = account.user
  const mayAdd = role === "admin" && key.data.kind === "account"
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

const TopUpForm = ({ onAdded, userId }: TopUpFormProps) => {
  const [usd, setUsd] = useState("20")
  const { add, added, isBusy, problem } = useTopUp(userId, onAdded)
  const id = useId()
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    void add(Number(usd))
  }
  return (
    <form onSubmit={onSubmit} aria-busy={isBusy}>
      <label for={id}>
        Amount in USD <span class="hint">What calls may cost; nothing is paid here</span>
      </label>
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
        <button type="submit" disabled={isBusy}>
          Add credits
        </button>
      </div>
      <p role="status">{added === undefined ? "" : `${formatUsd(added)} added.`}</p>
      <p class="problem" role="alert">
        {problem}
      </p>
    </form>
  )
}

/** One top-up has one name until it is known to be booked: sent twice, it is booked once. */
const useTopUp = (userId: string, onAdded: () => void) => {
  const { ask, onUnknownKey } = useSession()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const [added, setAdded] = useState<number>()
  const [pending, setPending] = useState<{ readonly name: string; readonly usd: number }>()
  const add = async (usd: number): Promise<void> => {
    const { name } = pending?.usd === usd ? pending : { name: newName() }
    setPending({ name, usd })
    setBusy(true)
    setProblem(undefined)
    setAdded(undefined)
    try {
      const json = { user_id: userId, amount_usd: usd }
      const { amount_usd } = await ask<TopUp>("/api/v1/credits/topups", {
        method: "POST",
        json,
        idempotencyKey: name
      })
      setPending(undefined)
      setAdded(amount_usd)
      onAdded()
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (error.status === 401) return onUnknownKey()
      setProblem(`${error.message}. Try again: what was added already is not added twice.`)
    }
    setBusy(false)
  }
  return { add, added, isBusy, problem }
}

/** `crypto.randomUUID` is there over https alone. */
const newName = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    ""
  )
