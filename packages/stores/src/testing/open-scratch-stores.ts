import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openSqliteStores, type SqliteStores, type SqliteStoresOptions } from '../state/open-stores.ts'
import { scratchFolder } from './scratch-folder.ts'

/** Opens stores that are closed when the test ends. Default: in a new file. */
export function openScratchStores(t: TestContext, options: Partial<SqliteStoresOptions> = {}): SqliteStores {
  const stores = openSqliteStores({ path: join(scratchFolder(t), 'state.db'), ...options })
  t.after(() => stores.close())
  return stores
}
