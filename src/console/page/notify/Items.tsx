import type { ComponentChildren } from "preact"
import { useId } from "preact/hooks"

interface ItemsProps<Item> {
  readonly title: string
  /** undefined until the server has told */
  readonly items: ReadonlyArray<Item> | undefined
  keyOf(item: Item): string
  nameOf(item: Item): string
  /** words about it, the most telling first */
  factsOf(item: Item): ReadonlyArray<string>
  actionOf(item: Item): ComponentChildren
  /** the text of a list without items */
  readonly empty: string
}

/** A list of things with some words about each and something to do with it, on screens of any width. */
export const Items = <Item,>({ actionOf, empty, factsOf, items, keyOf, nameOf, title }: ItemsProps<Item>) => {
  const id = useId()
  return (
    <section class="items" aria-labelledby={id} aria-busy={items === undefined}>
      <h2 id={id}>{title}</h2>
      {items?.length === 0 && <p class="hint">{empty}</p>}
      <ul aria-label={title}>
        {items?.map((item) => (
          <li key={keyOf(item)}>
            <span class="item-words">
              <strong>{nameOf(item)}</strong>{" "}
              <span class="item-facts hint">
                {factsOf(item).map((fact) => (
                  <span key={fact}>{fact}</span>
                ))}
              </span>
            </span>
            {actionOf(item)}
          </li>
        ))}
      </ul>
    </section>
  )
}
