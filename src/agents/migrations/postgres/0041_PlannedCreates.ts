import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"

/**
 * `agent_create` is planned for each call. A plan that was made while the table was empty, and kept, went through all live
 * sessions for each key: with 10,000 of them a batch of 128 took 3 s, until the table's first ANALYZE.
 */
export const plannedCreates: PostgresMigration = {
  id: 41,
  name: "planned_creates",
  statements: [
    `ALTER FUNCTION agent_create(json, text, timestamptz, integer) SET plan_cache_mode = force_custom_plan`
  ]
}
