/**
 * Domains that are sent as referrers only to be looked up in a site's statistics: they have no visitors. Their
 * sub-domains are meant as well. No domain with real visitors is listed.
 */
export const spamReferrers: ReadonlyArray<string> = `
  semalt.com semaltmedia.com kambasoft.com savetubevideo.com srecorder.com openmediasoft.com soundfrost.org
  softomix.com openfrost.com openfrost.net embedle.com extener.com fbdownloader.com

  buttons-for-website.com buttons-for-your-website.com free-share-buttons.com free-share-buttons.xyz
  1-free-share-buttons.com share-buttons.xyz share-buttons-for-free.com simple-share-buttons.com sharebutton.net
  sharebutton.org sharebutton.to social-buttons.com free-social-buttons.com free-social-buttons.xyz
  free-social-buttons7.xyz free-floating-buttons.com floating-share-buttons.com social-widget.xyz dbutton.net

  darodar.com econom.co cenokos.ru cenoval.ru iskalko.ru ilovevitaly.com ilovevitaly.co ilovevitaly.ru ilovevitaly.org
  ilovevitaly.info iloveitaly.ru priceg.com blackhatworth.com hulfingtonpost.com bestwebsitesawards.com o-o-6-o-o.com
  o-o-8-o-o.com o-o-11-o-o.com humanorightswatch.org guardlink.org theguardlan.com googlsucks.com googlemare.com
  xn--oogle-wmc.com xn--lifehacer-1rb.com superiends.org smailik.org forum69.info edakgfvwql.ru slftsdybbg.ru lomb.co
  lombia.co lumb.co tasteidea.com 7makemoneyonline.com makemoneyonline.com torture.ml domination.ml marketland.ml
  theautoprofit.ml santasgift.ml unpredictable.ga quit-smoking.ga getlamborghini.ga ranking2017.ga ownshop.cf
  topquality.cf magicdiet.gq

  best-seo-offer.com best-seo-solution.com best-seo-software.xyz best-seo-report.com 100dollars-seo.com
  success-seo.com seo-platform.com get-seo-help.com seoanalyses.com seocheckupx.com seocheckupx.net seoexperimenty.ru
  seopub.net top1-seo-service.com seo-tips.top rank-checker.online ranksonic.com ranksonic.info ranksonic.org
  rankings-analytics.com dailyrank.net 4webmasters.org anticrawler.org promoforum.ru keywords-monitoring-success.com
  keywords-monitoring-your-success.com fix-website-errors.com website-analyzer.info website-analytics.online
  website-speed-check.site website-speed-checker.site websites-reviews.com sitevaluation.org slow-website.xyz
  yourserverisdown.com uptimebot.net uptime-alpha.net uptime-beta.net uptime-gamma.net uptime-delta.net uptime-eu.net
  uptime-us.net

  event-tracking.com get-free-traffic-now.com get-free-social-traffic.com free-traffic.xyz free-fb-traffic.com
  free-fbook-traffic.com free-video-tool.com get-clickize.info increasewwwtraffic.info trafficmonetize.org
  trafficmonetizer.org webmonetizer.net monetizationking.net traffic2money.com traffic2cash.org traffic2cash.xyz
  traffic-cash.xyz trafficgenius.xyz web-revenue.xyz net-profits.xyz justprofit.xyz xtrafficplus.com
  webmaster-traffic.com wmasterlead.com your-good-links.com websocial.me social-traffic-1.xyz social-traffic-2.xyz
  social-traffic-3.xyz social-traffic-4.xyz social-traffic-5.xyz social-traffic-7.xyz glavprofit.ru investpamm.ru
  trafers.com videos-for-your-business.com video--production.com autovideobroadcast.com howtostopreferralspam.eu
  bottraffic.icu bottraffic.live bottraffic.xyz bottraffic143.xyz bottraffic329.xyz bottraffic4free.host
  bottraffic4you.club bot-traffic.icu bot-traffic.xyz trafficbot.life trafficbot.live trafficbot4free.xyz

  grets.store seders.website rida.tokyo razas.site fertuk.site dertus.site bartikus.site mantero.online bertus.site

  law-check-two.xyz law-enforcement-bot-ff.xyz law-enforcement-check-three.xyz law-enforcement-ee.xyz law-six.xyz
  eu-cookie-law-enforcement2.xyz cookie-law-enforcement-aa.xyz cookie-law-enforcement-bb.xyz
  cookie-law-enforcement-cc.xyz cookie-law-enforcement-dd.xyz cookie-law-enforcement-ee.xyz
  cookie-law-enforcement-ff.xyz cookie-law-enforcement-gg.xyz cookie-law-enforcement-hh.xyz
  cookie-law-enforcement-ii.xyz cookie-law-enforcement-jj.xyz compliance-alex.xyz compliance-alexa.xyz
  compliance-andrew.xyz compliance-barak.xyz compliance-brian.xyz compliance-don.xyz compliance-donald.xyz
  compliance-elena.xyz compliance-fred.xyz compliance-george.xyz compliance-irvin.xyz compliance-ivan.xyz
  compliance-john.top compliance-julianna.top scanner-alex.top scanner-alexa.top scanner-andrew.top scanner-barak.top
  scanner-brian.top scanner-don.top scanner-donald.top scanner-elena.top scanner-fred.top scanner-george.top
  scanner-irvin.top scanner-ivan.top scanner-jack.top scanner-jane.top scanner-jess.top scanner-jessica.top
  scanner-john.top scanner-josh.top scanner-julia.top scanner-julianna.top scanner-margo.top scanner-mark.top
  scanner-marwin.top scanner-mary.top scanner-nelson.top scanner-olga.top scanner-viktor.top scanner-walt.top
  scanner-walter.top scanner-willy.top

  buy-cheap-online.info chinese-amezon.com e-buyeasy.com xz618.com smartphonediscount.info online-templatestore.com
  meds-online24.com azartniy-bonus.com bookmaker-bet.com kabbalah-red-bracelets.com thesmartsearch.net online-hit.info
  top10-way.com freewhatsappload.com covadhosting.biz acads.net bif-ru.info bluerobot.info dipstar.org djekxa.ru
  doska-vsem.ru dostavka-v-krym.com forex-procto.ru gkvector.ru gobongo.info hundejo.com igru-xbox.net jjbabskoe.ru
  kino-fun.ru livefixer.com minegam.com mosrif.ru nardulan.com niki-mlt.ru ozas.net producm.ru psa48.ru qwesa.ru
  rednise.com replica-watch.ru reversing.cc sexytrend.ru slkrm.ru sosdepotdebilan.com spravka130.ru steame.ru
  tt-ipd.info twsufa.ru varikozdok.ru viagra-soft.ru video-hollywood.ru video-woman.com viel.su vitanail.ru
  vodkoved.ru x5market.ru yeartwit.com yhirurga.ru

  amanda-porn.ga dojki-hd.com erot.co escort-russian.com forsex.info generalporn.org girlporn.ru onlywoman.org
  pornhub-forum.ga pornhub-ru.com porno-chaman.info pornoelita.info pornoforadult.com pornogig.com pornohd1080.online
  pornoklad.ru pornonik.com pornoplen.com pron.pro rusexy.xyz sexsaoy.com sexyali.com youporn-forum.ga youporn-ru.com
`
  .trim()
  .split(/\s+/)

/**
 * Series of such domains, whose next member differs in a number, a name or an ending: by the first label of the domain,
 * and its last one where the words alone could be anybody's.
 */
const series =
  /(?:^|\.)(?:\d+-best-seo\.[a-z]+|(?:[a-z]+-)*(?:share|social|floating)-?buttons?(?:-?(?:\d+|for-free|[iv]+))?\.(?:xyz|top|info|icu|site|online)|(?:eu-)?cookie-law-enforcement\d?(?:-[a-z]{2})?\.[a-z]+|(?:compliance|scanner)-[a-z]+\.(?:xyz|top)|(?:bot-?traffic|traffic-?bot)[\w-]*\.[a-z]+|social-traffic-\d+\.[a-z]+)$/

/** Whether a hostname that is not listed belongs to a series of spam; in lower case. */
export const isSpamSeries = (hostname: string): boolean => hostname.length <= 64 && series.test(hostname)
