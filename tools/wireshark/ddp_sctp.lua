-- DDP over SCTP (RFC 5043, RFC 6581 section 7) for Wireshark: PPID 16 and 17, on top of the built-in DDP/RDMAP dissector.
--   tshark -X lua_script:tools/wireshark/ddp_sctp.lua -r FILE
local p = Proto("ddp_sctp", "DDP over SCTP")
local fn = {
  [1] = "Initiate", [2] = "Accept", [3] = "Reject", [4] = "Terminate", [5] = "Enhanced Initiate", [6] = "Enhanced Accept",
  [7] = "Enhanced Reject", [0xffff] = "Experimental"
}
local f = p.fields
f.ssn = ProtoField.uint16("ddp_sctp.ssn", "DDP-SSN")
f.func = ProtoField.uint16("ddp_sctp.function", "Function Code", base.HEX, fn)
f.a = ProtoField.bool("ddp_sctp.a", "Peer-to-peer (A)", 32, nil, 0x80000000)
f.b = ProtoField.bool("ddp_sctp.b", "RTR by Send (B)", 32, nil, 0x40000000)
f.ird = ProtoField.uint32("ddp_sctp.ird", "IRD", base.DEC, nil, 0x3fff0000)
f.c = ProtoField.bool("ddp_sctp.c", "RTR by Write (C)", 32, nil, 0x8000)
f.d = ProtoField.bool("ddp_sctp.d", "RTR by Read (D)", 32, nil, 0x4000)
f.ord = ProtoField.uint32("ddp_sctp.ord", "ORD", base.DEC, nil, 0x3fff)
f.pd = ProtoField.bytes("ddp_sctp.private_data", "Private Data")
local e_short = ProtoExpert.new("ddp_sctp.short", "Message too short", expert.group.MALFORMED, expert.severity.ERROR)
local e_pd = ProtoExpert.new("ddp_sctp.pd", "Private Data not allowed or too long", expert.group.PROTOCOL, expert.severity.ERROR)
p.experts = { e_short, e_pd }
local iwarp = Dissector.get("iwarp_ddp_rdmap")
local function make(name, ppid)
  local q = Proto("ddp_sctp_" .. name, "DDP over SCTP: " .. name)
  function q.dissector(t, pinfo, tree)
    local s = tree:add(p, t(), "DDP over SCTP, " .. name)
    if t:len() < (ppid == 16 and 2 or 4) then s:add_proto_expert_info(e_short) return t:len() end
    s:add(f.ssn, t(0, 2))
    if ppid == 16 then
      iwarp:call(t(2):tvb(), pinfo, tree)
      pinfo.cols.info:append(" ssn=" .. t(0, 2):uint())
      return t:len()
    end
    local code = t(2, 2):uint()
    s:add(f.func, t(2, 2))
    pinfo.cols.protocol = "DDP/SCTP"
    pinfo.cols.info:append(" Session " .. (fn[code] or "?") .. " ssn=" .. t(0, 2):uint())
    local at, n = 4, t:len() - 4
    if (code == 4 and n > 0) or n > 512 then s:add_proto_expert_info(e_pd) end
    if code >= 5 and code <= 7 and n >= 4 then
      for _, x in ipairs({ f.a, f.b, f.ird, f.c, f.d, f.ord }) do s:add(x, t(4, 4)) end
      at = 8
    end
    if t:len() > at then s:add(f.pd, t(at)) end
    return t:len()
  end
  DissectorTable.get("sctp.ppi"):add(ppid, q)
end
make("segment", 16)
make("control", 17)
