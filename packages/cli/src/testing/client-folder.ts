import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'

/** A home folder with a configuration of two agents, with functions to write and read its files. */
interface ClientFolder {
  readonly home: string
  readonly config: string
  write(file: string, text: string): string
  read(file: string): string
}

export const CONFIG_TEXT = `# mine
servers: {}
callers:
  - { user: reader, key: key-of-reader-1 }
  - { user: writer, key: key-of-writer-1 }
policy: [{ allow: ["*"] }]
`

export function clientFolder(t: TestContext, config: string = CONFIG_TEXT): ClientFolder {
  const home = mkdtempSync(path.join(tmpdir(), 'toolgate-clients-'))
  t.after(() => rmSync(home, { recursive: true }))
  const at = (file: string): string => path.resolve(home, file)
  const write = (file: string, text: string): string => {
    mkdirSync(path.dirname(at(file)), { recursive: true })
    writeFileSync(at(file), text)
    return at(file)
  }
  return { home, config: write('toolgate.yaml', config), write, read: (file) => readFileSync(at(file), 'utf8') }
}
