import { formatCompact, formatUsd } from "../figures/Format.ts"
import { Field } from "../parts/Form.tsx"
import { type Choice, type Funds, isPayable } from "./Funds.ts"

interface ModelPickerProps {
  readonly choices: ReadonlyArray<Choice>
  readonly funds: Funds | undefined
  /** false: the first model is not known yet, and would get in the way of typing */
  readonly isReady: boolean
  readonly value: string
  onChange(id: string): void
}

/** Models and collections by their ids, found by any part of id or name: the browser's own list does it. */
export const ModelPicker = ({ choices, funds, isReady, onChange, value }: ModelPickerProps) => {
  const chosen = choices.find((choice) => choice.id === value)
  return (
    <Field label="Model or collection" hint={`${choices.length} to choose from; type to search`}>
      {(id) => (
        <>
          <input
            id={id}
            required
            disabled={!isReady}
            value={value}
            list={`${id}-list`}
            maxLength={200}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            placeholder="provider/model"
            aria-describedby={`${id}-facts`}
            onInput={(event) => onChange(event.currentTarget.value)}
            // The list shows matches of the text: nothing to delete before another one is chosen.
            onFocus={(event) => event.currentTarget.select()}
          />
          <datalist id={`${id}-list`}>
            {choices.map((choice) => (
              <option key={choice.id} value={choice.id} label={choice.name} />
            ))}
          </datalist>
          <p id={`${id}-facts`} class="hint facts-of-model">
            {chosen === undefined ? (value === "" ? "" : "Not among your models.") : factsOf(chosen)}
            {chosen !== undefined && funds !== undefined && isPayable(chosen, funds) === false && (
              <> · the credits do not cover it</>
            )}
          </p>
        </>
      )}
    </Field>
  )
}

const factsOf = (choice: Choice): string => {
  if ("collection" in choice) {
    const { auto_route: isNext } = choice.collection
    return `${choice.name} · ${isNext ? "the next member is tried when one fails" : "one member answers"}`
  }
  return [
    choice.name,
    priceOf(choice.pricing),
    ...(choice.context_length > 0 ? [`${formatCompact(choice.context_length)} tokens of context`] : []),
    ...choice.categories.filter((category) => category !== "free")
  ].join(" · ")
}

const priceOf = ({ completion, prompt }: Readonly<Record<"completion" | "prompt", string>>): string => {
  if (prompt === "-1") return "price known afterwards"
  const million = (price: string): string => formatUsd(Number(price) * 1e6)
  return Number(prompt) === 0 && Number(completion) === 0
    ? "free"
    : `${million(prompt)} in, ${million(completion)} out, a million tokens`
}
