import { type ComponentChildren, type ComponentProps, createContext, h } from "preact"
import { useContext, useId } from "preact/hooks"
import { Toast } from "./Toast.tsx"
import type { Change } from "./UseChange.ts"

interface FormProps {
  readonly change: Pick<Change, "isBusy"> & Partial<Change>
  /** for screen readers */
  readonly label?: string
  readonly class?: string
  /** the text of the button; without it, button and problem are among the children */
  readonly submit?: string
  onSubmit(): void
  readonly children: ComponentChildren
}

/** The field that was refused, and the id of the element with the reason. */
const RefusedField = createContext<{ readonly field?: string | undefined; readonly problemId?: string }>({})

/** Fields that are sent together. */
export const Form = ({ change, children, class: name, label, onSubmit, submit }: FormProps) => {
  const problemId = useId()
  const send = (event: Event): void => {
    event.preventDefault()
    onSubmit()
  }
  return (
    <RefusedField.Provider value={{ field: change.field, problemId }}>
      <form class={name} aria-label={label} aria-busy={change.isBusy} onSubmit={send}>
        {children}
        {submit !== undefined && (
          <>
            <Toast id={problemId}>{change.problem}</Toast>
            <button type="submit" class="primary" disabled={change.isBusy}>
              {submit}
            </button>
          </>
        )}
      </form>
    </RefusedField.Provider>
  )
}

interface FieldProps {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
  /** gets the id that the label refers to */
  children(id: string): ComponentChildren
}

/** A label with its field. */
export const Field = ({ children, hint, label }: FieldProps) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>
        {label} {hint !== undefined && <span class="hint">{hint}</span>}
      </label>
      {children(id)}
    </div>
  )
}

interface TextFieldProps extends Omit<ComponentProps<"input">, "label" | "onInput" | "ref"> {
  readonly label: string
  readonly hint?: string
  /** the name in the API: the field is marked when the server refuses it */
  readonly name?: string
  /** the id of a `datalist` */
  readonly list?: string
  /** makes it a field of several lines */
  readonly rows?: number
  onInput(text: string): void
}

/** A field for a text or a number, as it was typed. */
export const TextField = ({ hint, label, name, onInput, rows, ...rest }: TextFieldProps) => {
  const { field, problemId } = useContext(RefusedField)
  const refused =
    name !== undefined && name === field ? { "aria-invalid": true, "aria-describedby": problemId } : {}
  return (
    <Field label={label} hint={hint}>
      {(id) =>
        h(rows === undefined ? "input" : "textarea", {
          ...rest,
          ...refused,
          id,
          rows,
          onInput: (event: { readonly currentTarget: HTMLInputElement }) => onInput(event.currentTarget.value)
        })
      }
    </Field>
  )
}
