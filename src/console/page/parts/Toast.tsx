import type { ComponentChildren } from "preact"

interface ToastProps {
  readonly id?: string
  /** read out when the screen reader pauses; a problem is read out at once */
  readonly isGood?: boolean
  readonly children: ComponentChildren
}

/** The outcome of an action, shown beside it and read out; an empty problem is not shown. */
export const Toast = ({ children, id, isGood = false }: ToastProps) => (
  <p id={id} class={isGood ? undefined : "problem"} role={isGood ? "status" : "alert"}>
    {children}
  </p>
)
