import type { UsedModel } from "../api/Contract.ts"
import { formatCompact, formatCount, formatUsd } from "../figures/Format.ts"

/** The models that cost most. */
export const TopModels = ({ models }: { readonly models: ReadonlyArray<UsedModel> | undefined }) => {
  const most = Math.max(...(models ?? []).map(({ costUsd }) => costUsd), 0)
  return (
    <section class="panel top-models" aria-labelledby="top-models-title">
      <table>
        <caption id="top-models-title">Models by cost</caption>
        <thead>
          <tr class="hint">
            <th scope="col">Model</th>
            <th scope="col">Requests</th>
            <th scope="col">Tokens</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {models?.map(({ costUsd, model, requests, totalTokens }) => (
            <tr key={model}>
              <th scope="row" title={model}>
                <span class="bar" style={{ width: `${most === 0 ? 0 : (costUsd / most) * 100}%` }} />
                <span class="value">{model}</span>
              </th>
              <td>{formatCount(requests)}</td>
              <td>{formatCompact(totalTokens)}</td>
              <td>{formatUsd(costUsd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {models?.length === 0 && <p class="hint">No model has answered in this window.</p>}
    </section>
  )
}
