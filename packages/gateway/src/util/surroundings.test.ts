import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { surroundings, withheldProxies } from './surroundings.ts'

describe('surroundings', () => {
  it('are paths, certificates, proxies, language and time zone, and nothing else', () => {
    const passed = {
      PATH: '/bin',
      HOME: '/home/vera',
      NODE_EXTRA_CA_CERTS: '/etc/ca.pem',
      REQUESTS_CA_BUNDLE: '/etc/ca.pem',
      HTTPS_PROXY: 'http://proxy.example.com:3128',
      https_proxy: 'proxy.example.com:3128',
      NO_PROXY: 'localhost,.example.com',
      LANG: 'ca_ES.UTF-8@euro',
      LC_TIME: 'de_DE.UTF-8',
      TZ: 'Europe/Berlin',
    }
    const secret = {
      OPENAI_API_KEY: 'x',
      GITHUB_TOKEN: 'x',
      NPM_TOKEN: 'x',
      npm_config__auth: 'x',
      npm_config_userconfig: '/home/vera/.npmrc',
      NODE_OPTIONS: '--require /evil.js',
      LD_PRELOAD: '/evil.so',
      PYTHONPATH: '/evil',
      LC_: 'x',
      LC_all: 'x',
      Path: 'x',
      TOOLGATE_KEY: 'x',
    }
    assert.deepEqual(surroundings({ ...passed, ...secret, LANGUAGE: undefined }), passed)
  })

  it('lack a proxy whose URL has a user or password, which is named', () => {
    const env = {
      HTTP_PROXY: 'http://vera:secret@proxy.example.com:3128',
      https_proxy: 'vera:secret@proxy.example.com:3128',
      ALL_PROXY: 'socks5://token@proxy.example.com',
      http_proxy: 'http://proxy.example.com',
    }
    assert.deepEqual(surroundings(env), { http_proxy: 'http://proxy.example.com' })
    assert.deepEqual(withheldProxies(env), ['HTTP_PROXY', 'https_proxy', 'ALL_PROXY'])
  })
})
