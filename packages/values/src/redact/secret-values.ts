/** A kind of secret that is recognised by its form. */
export interface SecretValue {
  /** The name in the marker: `[redacted:<name>]`. */
  readonly name: string
  /** The first characters, by which the scanner finds it. No letter or digit may precede them. */
  readonly starts: readonly string[]
  /**
   * Matched where one of `starts` was found. It is a fixed beginning and one repeated class, so that a try costs what it
   * matches or a bounded number of steps.
   */
  readonly pattern: RegExp
  /** How many characters precede the start by which it is found. */
  readonly before?: number
  /** The pattern repeats more than one class. After a failure it is not tried again within the same word. */
  readonly severalParts?: true
  /** A further check of the matched text. */
  readonly holds?: (matched: string) => boolean
  /** Parts of an invented example. They are apart so that no repository scanner takes it for a real secret. */
  readonly example: readonly string[]
  /** The document that describes the form. */
  readonly source: string
}

const LETTERS = 'AbCdEfGhIjKlMnOpQrStUvWxYz'
const MIXED = 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6'
const HEX = '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'

/** The known forms of secrets, by the prefixes that their issuers use. */
export const SECRET_VALUES: readonly SecretValue[] = [
  {
    name: 'anthropic-key',
    starts: ['sk-ant-'],
    pattern: /sk-ant-[\w-]{16,}/y,
    example: ['sk-', 'ant-api03-', MIXED],
    source: 'Anthropic: API keys',
  },
  {
    name: 'openai-key',
    starts: ['sk-', 'sess-'],
    pattern:
      /(?:sk-(?:proj|svcacct|admin|None|or-v1|org|lf)-[\w-]{16,}|sk-[\w-]{4,120}T3BlbkFJ[\w-]{16,}|(?:sk|sess)-[A-Za-z0-9]{20,}[\w-]*)/y,
    example: ['sk-', 'proj-', MIXED],
    source: 'OpenAI: API keys; the same form at OpenRouter, DeepSeek and others',
  },
  {
    name: 'google-api-key',
    starts: ['AIza'],
    pattern: /AIza[\w-]{35,}/y,
    example: ['AI', 'za', MIXED.slice(0, 35)],
    source: 'Google Cloud: API keys',
  },
  {
    name: 'google-oauth',
    starts: ['ya29.', 'GOCSPX-', '1//0'],
    pattern: /(?:ya29\.|GOCSPX-|1\/\/0)[\w-]{20,}/y,
    example: ['GOC', 'SPX-', MIXED.slice(0, 28)],
    source: 'Google: OAuth 2.0 access tokens, client secrets and refresh tokens',
  },
  {
    name: 'aws-key',
    starts: ['AKIA', 'ASIA', 'ABIA', 'ACCA'],
    pattern: /A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])(?:[^A-Za-z0-9+/]{1,5}[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/]))?/y,
    example: ['AK', 'IA', 'A1B2C3D4E5F6G7H8'],
    source: 'AWS IAM: unique identifiers; the secret key only by its name or right behind its id',
  },
  {
    name: 'github-token',
    starts: ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'],
    pattern: /(?:gh[pousr]_[A-Za-z0-9_.-]{36,}|github_pat_\w{36,})/y,
    example: ['gh', 'p_', MIXED.slice(0, 36)],
    source: 'GitHub: about authentication, token formats',
  },
  {
    name: 'gitlab-token',
    starts: ['gl'],
    pattern: /gl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|imt|agent|oas|ffct)-[\w.-]{20,}/y,
    example: ['gl', 'pat-', MIXED.slice(0, 20)],
    source: 'GitLab: token overview, token prefixes',
  },
  {
    name: 'slack-token',
    starts: ['xox', 'xapp-', 'xwfp-'],
    pattern: /(?:xox(?:[a-z]|e\.xox[bp])-|xapp-|xwfp-)[\w-]{10,}/y,
    example: ['xo', 'xb-', '123456789012-123456789012-', MIXED.slice(0, 24)],
    source: 'Slack: token types',
  },
  {
    name: 'slack-webhook',
    starts: ['hooks.slack.com/'],
    pattern: /hooks\.slack\.com\/(?:services|workflows|triggers)\/[\w/-]{20,}/y,
    example: ['hooks.slack', '.com/services/', 'T0AB1CD2E/B0FG3HI4J/', MIXED.slice(0, 24)],
    source: 'Slack: incoming webhooks',
  },
  {
    name: 'stripe-key',
    starts: ['sk_', 'rk_', 'whsec_'],
    pattern: /(?:[sr]k_(?:live|test|prod)_|whsec_)[A-Za-z0-9+/=]{16,}/y,
    example: ['sk_', 'live_', MIXED.slice(0, 24)],
    source: 'Stripe: API keys; webhook signing secrets (Standard Webhooks)',
  },
  {
    name: 'npm-token',
    starts: ['npm_'],
    pattern: /npm_[A-Za-z0-9]{36,}/y,
    example: ['np', 'm_', MIXED.slice(0, 36)],
    source: 'npm: about access tokens',
  },
  {
    name: 'pypi-token',
    starts: ['pypi-'],
    pattern: /pypi-AgE[\w-]{40,}/y,
    example: ['py', 'pi-AgEIcHlwaS5vcmc', MIXED],
    source: 'PyPI: API tokens',
  },
  {
    name: 'jwt',
    starts: ['eyJ'],
    pattern: /eyJ[\w-]{6,}\.eyJ[\w-]{6,}(?:\.[\w-]*)?/y,
    severalParts: true,
    example: ['ey', 'JhbGciOiJIUzI1NiJ9.', 'ey', 'JzdWIiOiIxMjM0NTY3ODkwIn0.', MIXED.slice(0, 43)],
    source: 'RFC 7519: JSON Web Token, compact serialization',
  },
  {
    name: 'sendgrid-key',
    starts: ['SG.'],
    pattern: /SG\.[\w-]{16,32}\.[\w-]{16,}/y,
    example: ['S', 'G.', MIXED.slice(0, 22), '.', MIXED.slice(0, 43)],
    source: 'SendGrid: API keys',
  },
  {
    name: 'twilio-key',
    starts: ['SK'],
    pattern: /SK[0-9a-f]{32}(?![A-Za-z0-9])/y,
    example: ['S', 'K', HEX.slice(0, 32)],
    source: 'Twilio: API keys, SID',
  },
  {
    name: 'huggingface-token',
    starts: ['hf_', 'api_org_'],
    pattern: /(?:hf|api_org)_[A-Za-z0-9]{30,}/y,
    example: ['h', 'f_', LETTERS, LETTERS.slice(0, 8)],
    source: 'Hugging Face: user access tokens',
  },
  {
    name: 'digitalocean-token',
    starts: ['dop_v1_', 'doo_v1_', 'dor_v1_'],
    pattern: /do[por]_v1_[0-9a-f]{64}/y,
    example: ['do', 'p_v1_', HEX],
    source: 'DigitalOcean: personal access tokens',
  },
  {
    name: 'discord-token',
    starts: ['MT', 'Mj', 'Mz', 'ND', 'NT', 'Nj', 'Nz', 'OD', 'OT'],
    pattern: /[MNO][\w-]{22,27}\.[\w-]{6,7}\.[\w-]{27,}/y,
    example: ['MT', 'A1B2C3D4E5F6G7H8I9J0K1.', 'GaBcDe.', MIXED.slice(0, 38)],
    source: 'Discord: authentication, bot tokens',
  },
  {
    name: 'shopify-token',
    starts: ['shpat_', 'shpca_', 'shppa_', 'shpss_'],
    pattern: /shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}/y,
    example: ['shp', 'at_', HEX.slice(0, 32)],
    source: 'Shopify: access tokens',
  },
  {
    name: 'telegram-token',
    starts: ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'],
    pattern: /\d{8,10}:[\w-]{35}(?![\w-])/y,
    example: ['123456789', ':', MIXED.slice(0, 35)],
    source: 'Telegram: Bot API, authorizing your bot',
  },
  {
    name: 'bearer',
    starts: ['Bearer', 'bearer', 'BEARER'],
    pattern: /(?:[Bb]earer|BEARER)[ \t]{1,4}(?:(?=[A-Za-z._~+/-]{0,60}\d)[\w.~+/-]{8,}|[\w.~+/-]{24,})=*/y,
    example: ['Bear', 'er ', MIXED.slice(0, 20)],
    source: 'RFC 6750: the Bearer scheme',
  },
  {
    name: 'basic',
    starts: ['Basic', 'basic', 'BASIC'],
    pattern: /(?:[Bb]asic|BASIC)[ \t]{1,4}[A-Za-z0-9+/]{6,4096}={0,2}/y,
    holds: isUserAndPassword,
    example: ['Bas', 'ic ', 'QWxhZGRpbjpvcGVuIHNlc2FtZQ=='],
    source: 'RFC 7617: the Basic scheme',
  },
  {
    name: 'private-key',
    starts: ['BEGIN'],
    pattern: /BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----/y,
    example: ['-----BEGIN ', 'PRIVATE KEY-----\n', MIXED, '\n-----END ', 'PRIVATE KEY-----'],
    source: 'RFC 7468: textual encodings of keys (up to the line of its end)',
  },
  {
    name: 'azure-secret',
    starts: ['Q~'],
    before: 4,
    pattern: /[\w~.-]{3}\dQ~[\w~.-]{31,40}/y,
    example: ['a1B', '8Q', '~', MIXED.slice(0, 34)],
    source: 'Microsoft Entra ID: client secrets; storage keys and signatures by their names (AccountKey, sig)',
  },
  {
    name: 'provider-key',
    starts: [
      'sk_',
      'fw_',
      'gsk_',
      'xai-',
      'pplx-',
      'r8_',
      'tvly-',
      'nvapi-',
      'lin_api_',
      'ntn_',
      'secret_',
      'dapi',
      'hvs.',
      'hvb.',
      'glsa_',
      'glc_',
      'ATATT',
      'ATCTT',
      'sbp_',
      'sb_secret_',
      'PMAK-',
      'sntrys_',
      'sntryu_',
      'NRAK-',
      'figd_',
      'dckr_pat_',
      'pscale_',
      'rubygems_',
      'fo1_',
      'tskey-',
      'pul-',
      'dp.',
      'sq0',
      'key-',
      'exa-',
      'fc-',
    ],
    pattern:
      /(?:sk_[0-9a-f]{48}|(?:fw|gsk|figd|ntn|secret|dckr_pat|sb_secret|lin_api|rubygems|fo1|glsa|pscale_(?:tkn|oauth|pw))_[\w-]{26,}|(?:pplx|xai|nvapi|PMAK|tskey-(?:auth|api|client))-[\w-]{20,}|(?:tvly-(?:dev-|prod-)?|fc-|key-)(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{30,}|glc_[A-Za-z0-9+/=]{32,}|r8_[A-Za-z0-9]{37,}|dapi[0-9a-f]{32}(?:-\d)?|hv[sb]\.[\w-]{24,}|AT[AC]TT[\w=-]{60,}|sbp_[0-9a-f]{40}|sntry[su]_[\w+/=-]{40,}|NRAK-[A-Z0-9]{27}|pul-[0-9a-f]{40}|dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}|sq0(?:atp|csp|idp)-[\w-]{22,})/y,
    example: ['gs', 'k_', MIXED],
    source:
      'Documentation of ElevenLabs, Fireworks, Groq, xAI, Perplexity, Replicate, Tavily, NVIDIA, Linear, Notion, Databricks, Vault, Grafana, Atlassian, Supabase, Postman, Sentry, New Relic, Figma, Docker, PlanetScale, RubyGems, Fly.io, Tailscale, Pulumi, Doppler, Square, Mailgun',
  },
]

function isUserAndPassword(matched: string): boolean {
  try {
    return /^[\x20-\x7e]*:[\x20-\x7e]*$/.test(atob(matched.slice('basic'.length).trim()))
  } catch {
    return false
  }
}
