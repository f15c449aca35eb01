import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parse } from 'yaml'
import { tempFolder } from './support/gateway.ts'

const ROOT = path.resolve(import.meta.dirname, '..')
const MAIN = path.join(ROOT, 'packages/cli/src/main.ts')

interface Step {
  readonly name?: string
  readonly run?: string
  readonly uses?: string
}

const workflow = parse(readFileSync(path.join(ROOT, 'deploy/ci/policy.yml'), 'utf8')) as {
  readonly on: object
  readonly permissions: object
  readonly jobs: { readonly policy: { readonly steps: readonly Step[] } }
}
const { steps } = workflow.jobs.policy

const POLICY = '[{ name: team, allow: [{ match: "files:*", input: "input.amount <= 100" }] }]'
const CONFIG = (policy: string) => `servers:
  files: { command: files, env: { TOKEN: "\${TOOLGATE_TEST_CI_TOKEN}", OTHER: "\${file:.toolgate/secrets/files-OTHER}" } }
callers: [{ keyHash: "sha256:${'ab'.repeat(32)}", user: vera }]
policy: ${policy}
`
const TESTS = `tools: [files:read]
tests:
  - { shows: a small amount, caller: vera, input: { amount: 100 }, expect: { call: { "files:read": allow } } }
  - { shows: a large amount, caller: vera, input: { amount: 101 }, expect: { call: { "files:read": deny } } }
`
/** Stands in for npm: it installs the command of this repository if the tarball is there. */
const NPM = `#!/bin/sh
[ "$1 $2 $4" = "install --prefix ./tools/toolgate-0.1.0.tgz" ] && [ -f "$4" ] || exit 9
mkdir -p "$3/node_modules/.bin"
printf '#!/bin/sh\\nexec "%s" --conditions=toolgate-source "%s" "$@"\\n' "${process.execPath}" "${MAIN}" > "$3/node_modules/.bin/toolgate"
chmod +x "$3/node_modules/.bin/toolgate"
`

describe('the workflow that tests a policy', () => {
  let folder: ReturnType<typeof tempFolder>
  const at = (name: string) => path.join(folder.path, name)
  before(() => {
    folder = tempFolder()
    for (const name of ['bin', 'temp', 'project/tools']) mkdirSync(at(name), { recursive: true })
    writeFileSync(at('bin/npm'), NPM, { mode: 0o755 })
    writeFileSync(at('project/tools/toolgate-0.1.0.tgz'), '')
    writeFileSync(at('project/policy.test.yaml'), TESTS)
  })
  after(() => folder.remove())

  /** Runs the steps as GitHub does, up to the first that fails. Returns it with its exit code. */
  const runAll = () => {
    writeFileSync(at('path'), '')
    for (const { name, run } of steps) {
      if (run === undefined) continue
      const added = readFileSync(at('path'), 'utf8').trim()
      const { status, stdout, stderr } = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', run], {
        cwd: at('project'),
        encoding: 'utf8',
        env: {
          PATH: [added, at('bin'), process.env['PATH']].filter(Boolean).join(':'),
          HOME: at('temp'),
          RUNNER_TEMP: at('temp'),
          GITHUB_PATH: at('path'),
        },
      })
      if (status !== 0) return { name, status, said: `${stdout}${stderr}` }
    }
    return undefined
  }

  it('reads the repository only, and runs on pull requests', () => {
    assert.deepEqual(workflow.permissions, { contents: 'read' })
    assert.deepEqual(Object.keys(workflow.on), ['pull_request', 'push'])
    for (const { uses } of steps) if (uses) assert.match(uses, /^actions\/[\w-]+@v\d+$/)
  })

  it('passes without secrets, and keeps the results', () => {
    writeFileSync(at('project/toolgate.yaml'), CONFIG(POLICY))
    assert.equal(runAll(), undefined)
    assert.match(readFileSync(at('project/policy-tests.xml'), 'utf8'), /tests="2" failures="0"/)
  })

  it('fails for a policy that a test refutes, and for a file with a mistake', () => {
    writeFileSync(at('project/toolgate.yaml'), CONFIG(POLICY.replace('100', '1000')))
    const failed = runAll()
    assert.deepEqual([failed?.name, failed?.status], ['Test the policy', 1])
    assert.match(readFileSync(at('project/policy-tests.xml'), 'utf8'), /a large amount/)
    writeFileSync(at('project/toolgate.yaml'), CONFIG('[{ alow: ["*"] }]'))
    const wrong = runAll()
    assert.deepEqual([wrong?.name, wrong?.status], ['Check the configuration', 2])
    assert.match(wrong?.said ?? '', /alow.*did you mean "allow"/)
  })

  it('passes for what the example of the repository has', () => {
    cpSync(path.join(ROOT, 'examples/policy-tests'), at('project'), { recursive: true })
    assert.equal(runAll()?.said, undefined)
  })
})
