import path from 'node:path'
import type { AuditConfig, StateConfig } from '../config.ts'
import { found, has, type Reading, reportIn } from '../reading.ts'
import { stateSchema } from '../schema/audit.ts'
import { type Section, withDefaults } from '../section.ts'
import { audit } from './audit.ts'

const inFile = withDefaults(stateSchema, ({ configDir }) => stateIn(configDir))

/** The state, unless it is in the database of `stores`. Its file is not the file of the audit. */
export const state: Section<StateConfig> = {
  schema: stateSchema,
  read(reading, key) {
    const { source } = reading
    const own = has(source, ['stores']) ? checkAbsent(reading) : inFile.read(reading, key)
    const ofAudit = reading.of(audit)
    if (ofAudit) checkFiles(reading, ofAudit, own)
    return own
  },
}

function checkAbsent({ source }: Reading): undefined {
  for (const key of ['store', 'path'])
    if (has(source, ['state', key]))
      source.report(
        ['state', key],
        `${found(source, ['state', key])} beside stores.postgres, expected none: the state is in the database`,
      )
}

/** By default, the state is a SQLite file beside the configuration. */
function stateIn(configDir: string) {
  return stateSchema.transform(({ store = 'sqlite', path: file }, ctx): StateConfig => {
    if (store === 'sqlite') return { store, path: path.resolve(configDir, file ?? '.toolgate/state.db') }
    if (file !== undefined) reportIn(ctx, ['path'], 'found a path for the store "memory", expected none')
    return { store }
  })
}

function checkFiles({ source }: Reading, ofAudit: AuditConfig, own: StateConfig | undefined): void {
  if (own?.path !== undefined && own.path === ofAudit.path)
    source.report(
      has(source, ['state', 'path']) ? ['state', 'path'] : ['audit', 'path'],
      'found one file for the audit and the state, expected one for each',
    )
  const { path: checkpoints } = ofAudit.checkpoints || {}
  if (checkpoints !== undefined && [ofAudit.path, own?.path].includes(checkpoints))
    source.report(
      ['audit', 'checkpoints', 'path'],
      'found the file of the audit or the state, expected one for the checkpoints alone',
    )
}
