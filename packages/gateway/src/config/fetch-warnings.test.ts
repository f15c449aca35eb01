import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findDownloads, findFetchedPrograms } from './fetched-program.ts'
import { loadConfig } from './load-config.ts'

const COMMIT = '0123456789abcdef0123456789abcdef01234567'
const DIGEST = `sha256:${COMMIT}${'0'.repeat(24)}`

function findIn(line: string): readonly string[] {
  const [command = '', ...args] = line.split(' ')
  return findFetchedPrograms(command, args).map(({ written, exact }) => `${written} → ${exact}`)
}

describe('findFetchedPrograms', () => {
  const unpinned: readonly (readonly [line: string, ...found: readonly string[]])[] = [
    ['npx pkg', 'pkg → pkg@1.2.3'],
    ['npx -y @scope/pkg --root .', '@scope/pkg → @scope/pkg@1.2.3'],
    ['npx --yes pkg@latest', 'pkg@latest → pkg@1.2.3'],
    ['npx pkg@^1.2.3', 'pkg@^1.2.3 → pkg@1.2.3'],
    ['npx pkg@1.2', 'pkg@1.2 → pkg@1.2.3'],
    ['npx -y -- pkg', 'pkg → pkg@1.2.3'],
    ['npx --package=pkg bin', 'pkg → pkg@1.2.3'],
    ['npx -p a@1.0.0 -p b bin', 'b → b@1.2.3'],
    ['npx --registry https://example.com pkg', 'pkg → pkg@1.2.3'],
    ['/usr/local/bin/npx pkg', 'pkg → pkg@1.2.3'],
    ['npx.cmd pkg', 'pkg → pkg@1.2.3'],
    ['npx owner/repo', 'owner/repo → a package with its exact version, or a repository with its whole commit'],
    ['npm exec -- pkg', 'pkg → pkg@1.2.3'],
    ['npm x pkg', 'pkg → pkg@1.2.3'],
    ['bunx pkg', 'pkg → pkg@1.2.3'],
    ['bun x pkg', 'pkg → pkg@1.2.3'],
    ['pnpm dlx pkg@next', 'pkg@next → pkg@1.2.3'],
    ['pnpm --silent dlx pkg', 'pkg → pkg@1.2.3'],
    ['yarn dlx pkg', 'pkg → pkg@1.2.3'],
    ['uvx pkg', 'pkg → pkg==1.2.3'],
    ['uvx pkg@latest', 'pkg@latest → pkg==1.2.3'],
    ['uvx --from pkg>=1 bin', 'pkg>=1 → pkg==1.2.3'],
    ['uvx --with more pkg==1.2.3', 'more → more==1.2.3'],
    ['uv tool run pkg[cli]', 'pkg[cli] → pkg[cli]==1.2.3'],
    ['uv run --with mcp server.py', 'mcp → mcp==1.2.3'],
    ['pipx run pkg', 'pkg → pkg==1.2.3'],
    ['pipx run --spec pkg==1.* bin', 'pkg==1.* → pkg==1.2.3'],
    ['docker run -i --rm image', 'image → image@sha256:…'],
    ['docker run -e TOKEN --mount a=b,c=d -i org/image:latest x', 'org/image:latest → org/image@sha256:…'],
    ['docker run -ite TOKEN host:5000/image', 'host:5000/image → host:5000/image@sha256:…'],
    ['docker --context far run --name=x image:1.2.3', 'image:1.2.3 → image@sha256:…'],
    ['podman container run -eTOKEN image', 'image → image@sha256:…'],
    ['env A=b npx -y pkg', 'pkg → pkg@1.2.3'],
  ]
  for (const [line, ...found] of unpinned)
    it(`reads ${line}`, () => {
      assert.deepEqual(findIn(line), found)
    })

  it('reads the script of a shell', () => {
    assert.deepEqual(
      findFetchedPrograms('sh', ['-c', 'cd /srv && exec npx -y pkg --flag']).map(({ written }) => written),
      ['pkg'],
    )
  })

  const exact = [
    'npx -y pkg@1.2.3 other',
    'npx @scope/pkg@1.2.3-rc.1',
    `npx github:owner/repo#${COMMIT}`,
    'npx ./server',
    'npx --no-install pkg',
    'npx -p pkg@1.2.3 bin',
    'pnpm dlx pkg@1.2.3',
    'pnpm start',
    'pnpm run dlx',
    'npm run exec',
    'uvx pkg@1.2.3',
    'uvx --from pkg==1.2.3 --python 3.13 bin',
    `uvx --from git+https://example.com/a.git@${COMMIT} bin`,
    'uv run server.py --with x',
    'pipx run pkg==1.2.3',
    `docker run -i --rm -v /a:/b image@${DIGEST} bash`,
    `docker run image:1.2@${DIGEST}`,
    'docker run --pull=never image',
    'docker run --pull never image',
    'docker compose up',
    'node server.js npx',
    '/opt/server --with npx',
  ]
  for (const line of exact)
    it(`finds nothing in ${line}`, () => {
      assert.deepEqual(findIn(line), [])
    })
})

describe('loadConfig, of a server that fetches its program', () => {
  const load = (pins: string) =>
    loadConfig('/srv/toolgate.yaml', {
      text: `servers:\n  files: { command: npx, args: [-y, "pkg@latest"] }\n  safe: { command: npx, args: [-y, "pkg@1.2.3"] }\npolicy: [{ allow: ["*"] }]\n${pins}`,
    }).warnings?.map(({ code, path, line, message }) => [code, path, line, message])

  it('warns, naming the server and what to write', () => {
    const message =
      'the server "files" runs "pkg@latest", which may be another program at each start, and pins compare only what its tools say: write pkg@1.2.3'
    assert.deepEqual(load(''), [['program_unpinned', 'servers.files', 2, message]])
    assert.deepEqual(load('pins: { new: suspend }'), load(''))
  })

  it('does not where pins are off', () => {
    assert.equal(load('pins: off'), undefined)
  })
})

describe('findDownloads', () => {
  const lines: readonly (readonly [line: string, ...found: readonly string[]])[] = [
    ['npx -y @scope/pkg@1.2.3 ./docs', '@scope/pkg@1.2.3'],
    ['npx -p a@1.0.0 -p b@1.0.0 bin', 'a@1.0.0', 'b@1.0.0'],
    ['uvx --with more==1.0 pkg==1.2.3', 'more==1.0', 'pkg==1.2.3'],
    [`docker run -i image@${DIGEST}`, `image@${DIGEST}`],
    ['env A=b npx -y pkg@1.2.3', 'pkg@1.2.3'],
    ['npx --no-install pkg'],
    ['docker run --pull=never image'],
    ['npx ./server'],
    ['uvx --from ./server bin'],
    ['node server.js npx'],
    ['npm start'],
  ]
  for (const [line, ...found] of lines)
    it(`names what ${line} downloads, with exact versions too`, () => {
      const [command = '', ...args] = line.split(' ')
      assert.deepEqual(findDownloads(command, args), found)
    })
})
