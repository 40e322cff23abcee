import type { SourceList } from "./SourceList.ts"

/** Places where people discuss: link sites, forums, questions and answers, the Fediverse. */
export const communities: SourceList = {
  Reddit:
    "reddit.com redd.it redditmedia.com android-app://com.reddit.frontpage android-app://com.andrewshu.android.reddit " +
    "android-app://com.andrewshu.android.redditdonation android-app://com.laurencedawson.reddit_sync " +
    "android-app://com.rubenmayayo.reddit android-app://com.onelouder.baconreader android-app://free.reddit.news " +
    "android-app://ml.docilealligator.infinityforreddit android-app://o.o.joey",
  "Hacker News":
    "news.ycombinator.com hn.algolia.com hckrnews.com hackerweb.app hn.premii.com hn.svelte.dev hnrss.org " +
    "android-app://io.github.hidroh.materialistic android-app://com.simon.harmonichackernews hn hackernews hacker-news",
  Lobsters: "lobste.rs",
  Tildes: "tildes.net",
  Slashdot: "slashdot.org",
  Digg: "digg.com",
  Fark: "fark.com",
  MetaFilter: "metafilter.com",
  "Product Hunt": "producthunt.com producthunt",
  "Indie Hackers": "indiehackers.com",
  BetaList: "betalist.com",
  Peerlist: "peerlist.io",
  "Designer News": "designernews.co",
  "Echo JS": "echojs.com",
  Quora: "quora.com qr.ae",
  "Stack Overflow": "stackoverflow.com stackoverflow.co",
  "Stack Exchange":
    "stackexchange.com serverfault.com superuser.com askubuntu.com mathoverflow.net stackapps.com",
  "DEV Community": "dev.to devto",
  Hashnode: "hashnode.com hashnode.dev",
  HackerNoon: "hackernoon.com",
  DZone: "dzone.com",
  Spiceworks: "spiceworks.com",
  "Experts Exchange": "experts-exchange.com",
  LinuxQuestions: "linuxquestions.org",
  "Ubuntu Forums": "ubuntuforums.org",
  "Linux.org.ru": "linux.org.ru",
  CodeProject: "codeproject.com",
  "Daily.dev": "daily.dev dailydev",
  Disqus: "disqus.com",
  Discourse: "discourse.org",
  "Google Groups": "groups.google.com",
  "Yahoo Answers": "answers.yahoo.com",
  "4chan": "4chan.org 4channel.org 4cdn.org",
  "9GAG": "9gag.com",
  ResetEra: "resetera.com",
  NeoGAF: "neogaf.com",
  GameFAQs: "gamefaqs.gamespot.com",
  "Something Awful": "forums.somethingawful.com",
  "XDA Forums": "xdaforums.com",
  Fandom: "fandom.com",
  Ravelry: "ravelry.com",
  Mumsnet: "mumsnet.com",
  Whirlpool: "forums.whirlpool.net.au",
  "Boards.ie": "boards.ie",
  gutefrage: "gutefrage.net",
  "Tweakers Forum": "gathering.tweakers.net",
  Flashback: "flashback.org",
  Wykop: "wykop.pl",
  Meneame: "meneame.net",
  Forocoches: "forocoches.com",
  Jeuxvideo: "jeuxvideo.com",
  HardwareLuxx: "hardwareluxx.de",
  ComputerBase: "computerbase.de",
  "Ekşi Sözlük": "eksisozluk.com",
  Habr: "habr.com",
  Pikabu: "pikabu.ru",
  "VC.ru": "vc.ru",
  "4PDA": "4pda.to 4pda.ru",
  Zhihu: "zhihu.com",
  Douban: "douban.com",
  "Baidu Tieba": "tieba.baidu.com",
  V2EX: "v2ex.com",
  SegmentFault: "segmentfault.com",
  CSDN: "csdn.net",
  Juejin: "juejin.cn juejin.im",
  cnblogs: "cnblogs.com",
  OSChina: "oschina.net",
  Jianshu: "jianshu.com",
  Hupu: "hupu.com",
  NGA: "nga.cn",
  LIHKG: "lihkg.com",
  PTT: "ptt.cc",
  Dcard: "dcard.tw",
  Mobile01: "mobile01.com",
  "Naver Blog": "blog.naver.com",
  "Naver Cafe": "cafe.naver.com",
  "Daum Cafe": "cafe.daum.net",
  DCInside: "dcinside.com",
  Clien: "clien.net",
  Ruliweb: "ruliweb.com",
  GeekNews: "news.hada.io",
  Hatena: "hatena.ne.jp hatenablog.com",
  Qiita: "qiita.com",
  Zenn: "zenn.dev",
  note: "note.com",
  "5channel": "5ch.net 5ch.io 2ch.sc",
  Raindrop: "raindrop.io",
  Pinboard: "pinboard.in",
  "Are.na": "are.na",
  "Scoop.it": "scoop.it",
  Pearltrees: "pearltrees.com",
  Diigo: "diigo.com",
  Mix: "mix.com",
  StumbleUpon: "stumbleupon.com",
  Delicious: "del.icio.us delicious.com",
  Folkd: "folkd.com",

  Mastodon:
    "joinmastodon.org mastodon.social mastodon.online mastodon.world mastodon.cloud mastodon.xyz mastodon.art mastodon.nl " +
    "mastodon.nu mastodon.ie mastodon.scot mastodon.uno mastodon.green mastodon.au mastodon.nz mastodon.sdf.org " +
    "mastodon.gamedev.place mastodon.design mastodontech.de mastodon.de mstdn.social mstdn.jp mstdn.ca mstdn.party " +
    "mas.to masto.ai masto.es masto.pt fosstodon.org hachyderm.io infosec.exchange techhub.social pawoo.net chaos.social " +
    "social.coop octodon.social troet.cafe norden.social toot.community toot.io universeodon.com c.im mindly.social ioc.exchange " +
    "indieweb.social sfba.social scholar.social fediscience.org mathstodon.xyz ruby.social phpc.social functional.cafe " +
    "social.lol social.vivaldi.net floss.social framapiaf.org piaille.fr mamot.fr tech.lgbt kolektiva.social " +
    "journa.host newsie.social det.social social.tchncs.de bonn.social muenchen.social ruhr.social sueden.social " +
    "nrw.social hessen.social metalhead.club aus.social wandering.shop front-end.social typo.social discuss.systems " +
    "hostux.social botsin.space social.linux.pizza snabelen.no sigmoid.social mastodonapp.uk elk.zone phanpy.social " +
    "android-app://org.joinmastodon.android android-app://com.keylesspalace.tusky",
  Misskey: "misskey.io misskey.design misskey-hub.net",
  Pixelfed: "pixelfed.org pixelfed.social pixelfed.de",
  Friendica: "friendi.ca libranet.de",
  Lemmy:
    "join-lemmy.org lemmy.world lemmy.ml lemmy.ca lemmy.zip lemmy.dbzer0.com lemmy.sdf.org lemm.ee beehaw.org sh.itjust.works " +
    "programming.dev feddit.org feddit.de feddit.uk feddit.nl feddit.it discuss.tchncs.de sopuli.xyz aussie.zone " +
    "slrpnk.net infosec.pub hexbear.net lemmygrad.ml",
  kbin: "kbin.social fedia.io",
  PieFed: "piefed.social"
}
