import type { PostgresMigration } from "#src/infra/postgres/Migrations.ts"
import { accounts } from "./postgres/0001_Accounts.ts"
import { drops } from "./postgres/0002_Drops.ts"
import { imports } from "./postgres/0003_Imports.ts"
import { namedDrops } from "./postgres/0004_NamedDrops.ts"
import { ledger } from "./postgres/0005_Ledger.ts"
import { catalogue } from "./postgres/0006_Catalogue.ts"
import { collections } from "./postgres/0007_Collections.ts"
import { callAnswers } from "./postgres/0008_CallAnswers.ts"
import { agents } from "./postgres/0009_Agents.ts"
import { idempotency } from "./postgres/0011_Idempotency.ts"
import { grownImports } from "./postgres/0013_GrownImports.ts"
import { losses } from "./postgres/0010_Losses.ts"
import { counting } from "./postgres/0012_Counting.ts"

/** In order of their ids. A migration that has been released is never changed: a later one changes what it made. */
export const postgresMigrations: ReadonlyArray<PostgresMigration> = [
  accounts,
  drops,
  imports,
  namedDrops,
  ledger,
  catalogue,
  collections,
  callAnswers,
  agents,
  losses,
  idempotency,
  counting,
  grownImports
]
